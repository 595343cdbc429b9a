// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>
#include <vlmest/diagnose/evidence/snapshot/timeline.hpp>
#include <vlmest/diagnose/evidence/stack/frame_traits.hpp>

namespace vlmest::diagnose {

/// What an allocation was for. A snapshot does not say it: it is concluded from the stack and the lifetime.
enum class MemoryRole : std::uint8_t {
  weight,
  gradient,
  optimizer_state,
  activation,
  temporary,
  input,
  kv_cache,
  workspace,
  unknown
};
inline constexpr std::array<std::string_view, 9> memory_roles{
    "weight", "gradient", "optimizer_state", "activation", "temporary", "input", "kv_cache", "workspace", "unknown"};
constexpr std::string_view name(MemoryRole r) { return memory_roles[static_cast<std::size_t>(r)]; }

/// What the program does at an event.
enum class Stage : std::uint8_t { other, load, input, forward, backward, optimizer };
inline constexpr std::array<std::string_view, 6> stage_names{"other",   "load",     "input",
                                                             "forward", "backward", "optimizer"};
constexpr std::string_view name(Stage s) { return stage_names[static_cast<std::size_t>(s)]; }

/// Where a trace is in the program, event by event.
struct Stages {
  std::vector<Stage> at;            ///< of the last allocation up to the event, or the failed one
  std::vector<std::uint32_t> turn;  ///< counts the changes of stage: which forward, which backward
  std::vector<std::uint32_t> call;  ///< counts the changes of the program's function that allocates
  bool training = false;            ///< there is a backward or an optimizer
};

Stage stage_of(const CallStackTraits& t, bool training, bool stackless);

Stages stages_of(const RecordedSnapshot& s, std::span<const TraceEntry> trace,
                 const std::vector<CallStackTraits>& traits);

namespace role_rules {

/// cuBLAS's workspaces, by the size that torch gives them: 4,096 KiB twice and 16 KiB eight times, and 32 MiB from
/// Hopper on (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize).
constexpr bool workspace_size(Bytes requested) {
  return requested == Bytes((2 * 4096 + 8 * 16) * 1024) || requested == Bytes(32 << 20);
}

/// How long the 95th of a hundred allocations of a turn of the backward lives that does not outlive it, in events.
std::size_t usual_life(const std::vector<Allocation>& all, const Stages& stages, std::uint32_t turn);

}  // namespace role_rules

/// A role for each allocation of the timeline:
/// - scratch by its C++ frames, or by cuBLAS's size where it is taken in the middle of a call and kept;
/// - optimizer_state was made inside of the optimizer and outlives that step, or was there before the recording and is
///   freed inside of it;
/// - kv_cache and input by their frames;
/// - weight was made while loading, or was there before the recording began and stays;
/// - gradient was made in a backward and outlives it; at an OOM inside of that backward, is older than what it frees;
/// - activation was made in a forward; temporary did not outlive its function, step, loading or backward.
std::vector<MemoryRole> memory_roles_of(std::span<const TraceEntry> trace, const SnapshotTimeline& t,
                                        const Stages& stages, const std::vector<CallStackTraits>& traits);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/roles.hpp>
#endif
