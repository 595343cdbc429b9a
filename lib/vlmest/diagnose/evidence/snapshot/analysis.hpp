// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/allocator/memory_snapshot.hpp>
#include <vlmest/diagnose/evidence/snapshot/fragmentation.hpp>
#include <vlmest/diagnose/evidence/snapshot/growth.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>
#include <vlmest/diagnose/evidence/snapshot/roles.hpp>
#include <vlmest/diagnose/evidence/snapshot/scores.hpp>
#include <vlmest/diagnose/evidence/snapshot/timeline.hpp>
#include <vlmest/diagnose/evidence/stack/frame_traits.hpp>

namespace vlmest::diagnose {

/// Which part of a model's code an allocation comes from, where its frames tell.
enum class CodePart : std::uint8_t { other, attention, mask, loss, linear, norm, embedding, fft, kv_cache };
inline constexpr std::array<std::string_view, 9> code_parts{"other", "attention", "mask", "loss",    "linear",
                                                            "norm",  "embedding", "fft",  "kv_cache"};
constexpr std::string_view name(CodePart p) { return code_parts[static_cast<std::size_t>(p)]; }

/// A place in the code, by what its frames say.
struct CodeSite {
  std::uint32_t program = CallStackTraits::no_frame;  ///< innermost frame outside of torch, e.g. in modeling_….py
  std::uint32_t user = CallStackTraits::no_frame;     ///< innermost frame outside of installed packages
  CodePart part = CodePart::other;
  bool vision = false;  ///< some frame is of an image encoder
  bool scores = false;  ///< a line that makes attention scores (snapshot_scores.hpp)
  Stage stage = Stage::other;
};

/// Live allocations of one stack, role and stage of life.
struct LiveGroup {
  StackTable::Stack stack = 0;
  MemoryRole role = MemoryRole::unknown;
  CodeSite site;
  std::size_t count = 0;
  Bytes bytes;      ///< as the allocator rounds
  Bytes requested;  ///< the tensors' own
  Bytes largest;    ///< the largest tensor's
};

struct RoleSum {
  std::size_t count = 0;
  Bytes bytes;
};

/// What a snapshot says of one device.
struct SnapshotAnalysis {
  SnapshotTimeline timeline;
  Stages stages;
  std::vector<MemoryRole> roles;  ///< of each allocation of the timeline
  std::optional<OomRequest> oom;  ///< the last one of the trace
  std::size_t ooms = 0;
  CodeSite oom_site;
  std::size_t moment = 0;         ///< the event before which memory is looked at: the OOM, else the peak
  Bytes live;                     ///< active bytes then; the sum over `groups` and over `by_role`
  std::vector<LiveGroup> groups;  ///< the largest first
  std::array<RoleSum, memory_roles.size()> by_role{};
  ReservedMemory reserved;
  StepGrowth growth;
};

CodeSite code_site(const CallStackTraits& t, bool training, bool stackless);

/// The events of one device; none for a device that the snapshot does not name.
inline std::span<const TraceEntry> trace_of(const RecordedSnapshot& s, std::int64_t device) {
  if (device < 0 || static_cast<std::size_t>(device) >= s.traces.size()) return {};
  return s.traces[static_cast<std::size_t>(device)];
}

/// The device whose memory ran out, else the one that had the most reserved.
std::int64_t device_of_interest(const RecordedSnapshot& s);

/// Everything about one device. Reads settings leniently: an unknown one does not stop a diagnosis.
SnapshotAnalysis analyse(const RecordedSnapshot& s, std::int64_t device);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/analysis.hpp>
#endif
