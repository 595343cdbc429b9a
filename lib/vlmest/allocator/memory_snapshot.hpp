// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/segment.hpp>

namespace vlmest::allocator {

/// What a recorded history tells of: torch/csrc/cuda/memory_snapshot.cpp, action_to_str.
enum class TraceAction : std::uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  snapshot
};

inline constexpr std::array<std::string_view, 9> trace_actions{
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "oom",   "snapshot"};
constexpr std::string_view name(TraceAction a) { return trace_actions[static_cast<std::size_t>(a)]; }

/// An entry of torch.cuda.memory._snapshot()["device_traces"][device]. The size of an allocation and of its frees is
/// the one that was asked for, that of an oom the rounded one; an oom has no address.
struct TraceEvent {
  TraceAction action = TraceAction::alloc;
  std::int64_t address = 0;
  Bytes size;
  Stream stream = 0;
  bool operator==(const TraceEvent&) const = default;
};

/// One device of torch.cuda.memory._snapshot(): its segments in order of address, the events that led to them (all of
/// them, or the last ones), and the settings.
struct MemorySnapshot {
  std::vector<Segment> segments;
  std::vector<TraceEvent> events;
  AllocatorConfig config;
};

}  // namespace vlmest::allocator
