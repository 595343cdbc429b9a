// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/allocator/memory_snapshot.hpp>
#include <vlmest/diagnose/evidence/stack/interned.hpp>

namespace vlmest::diagnose {

/// The memory pool that a segment belongs to: (0, 0) is the default one, all others are private (CUDA graphs, MemPool).
struct PoolId {
  std::int64_t first = 0, second = 0;
  bool operator==(const PoolId&) const = default;
};

/// An entry of device_traces[device] of torch.cuda.memory._snapshot(): 40 bytes, since a trace may hold millions.
struct TraceEntry {
  std::uint64_t address = 0;     ///< of an oom: the bytes that were free on the device (device_free)
  Bytes size;                    ///< what was asked for; of an oom the size rounded to 512 bytes
  allocator::Stream stream = 0;  ///< the CUDA stream
  std::int64_t time_us = 0;      ///< 0 where it is not recorded (before torch 2.1)
  StackTable::Stack stack = 0;   ///< where in the program; 0 where not recorded
  allocator::TraceAction action = allocator::TraceAction::alloc;
  bool operator==(const TraceEntry&) const = default;
};
static_assert(sizeof(TraceEntry) == 40);

struct RecordedBlock {
  std::uint64_t address = 0;
  Bytes size, requested;  ///< with and without the allocator's rounding
  StackTable::Stack stack = 0;
  allocator::BlockState state = allocator::BlockState::cached;  ///< cached, allocated or awaiting
  bool operator==(const RecordedBlock&) const = default;
};

struct RecordedSegment {
  std::int64_t device = 0;
  std::uint64_t address = 0;
  Bytes size;
  allocator::Stream stream = 0;
  allocator::Pool pool = allocator::Pool::large;
  PoolId pool_id;
  bool expandable = false;
  StackTable::Stack stack = 0;
  std::vector<RecordedBlock> blocks;  ///< in order of address
};

/// A range of torch.profiler.record_function that was open while memory was recorded: where it starts or ends.
struct MemoryAnnotation {
  std::uint32_t name = 0;  ///< its number in stacks.strings
  bool starts = true;      ///< stage is START, not END
  std::int64_t device = 0;
  std::int64_t time_us = 0;
  bool operator==(const MemoryAnnotation&) const = default;
};

/// allocator_settings, as far as they are given.
struct RecordedSettings {
  std::optional<std::string> text;             ///< PYTORCH_ALLOC_CONF, or PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::int64_t> max_split_size;  ///< -1: no limit
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::vector<std::pair<std::string, std::int64_t>> roundup_power2_divisions;
};

/// torch.cuda.memory._snapshot() with all its devices, of any version of torch. Keys that a version lacks keep their
/// defaults; entries of traces with an action that is not known are left out and counted.
struct RecordedSnapshot {
  std::vector<RecordedSegment> segments;        ///< of all devices, as recorded
  std::vector<std::vector<TraceEntry>> traces;  ///< by device; empty where no history was recorded
  std::vector<MemoryAnnotation> annotations;
  std::optional<RecordedSettings> settings;
  StackTable stacks;
  std::uint64_t unknown_actions = 0;
  std::string unknown_action;  ///< the first of them, as it may be shown
};

}  // namespace vlmest::diagnose
