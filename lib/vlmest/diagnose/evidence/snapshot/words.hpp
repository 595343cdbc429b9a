// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/diagnose/evidence/stack/interned.hpp>

/// The words of torch.cuda.memory._snapshot(), under fixed numbers of a StringTable.
/// Source: torch/csrc/cuda/Module.cpp, THCPModule_memorySnapshot, and torch/csrc/cuda/memory_snapshot.cpp.
namespace vlmest::diagnose::word {

enum Word : std::uint32_t {
  filename,
  line,
  name,
  action,
  addr,
  size,
  stream,
  time_us,
  device_free,
  frames,
  state,
  requested_size,
  address,
  history,    // before torch 2.0, instead of requested_size and frames
  real_size,  // in history
  blocks,
  device,
  total_size,
  segment_type,
  segment_pool_id,
  is_expandable,
  segments,
  device_traces,
  allocator_settings,
  external_annotations,
  stage,
  alloc_conf,
  cuda_alloc_conf,
  max_split_size,
  garbage_collection_threshold,
  expandable_segments,
  roundup_power2_divisions,
  first_action,  // as allocator::TraceAction counts them
  active_allocated = first_action + 9,
  active_pending_free,
  active_awaiting_free,
  inactive,
  small,
  large,
  count
};
/// Keys are below this, so that a set of them is 32 bits.
inline constexpr std::uint32_t keys = first_action;
static_assert(keys <= 32);

inline constexpr std::array<std::string_view, count> words{"filename",
                                                           "line",
                                                           "name",
                                                           "action",
                                                           "addr",
                                                           "size",
                                                           "stream",
                                                           "time_us",
                                                           "device_free",
                                                           "frames",
                                                           "state",
                                                           "requested_size",
                                                           "address",
                                                           "history",
                                                           "real_size",
                                                           "blocks",
                                                           "device",
                                                           "total_size",
                                                           "segment_type",
                                                           "segment_pool_id",
                                                           "is_expandable",
                                                           "segments",
                                                           "device_traces",
                                                           "allocator_settings",
                                                           "external_annotations",
                                                           "stage",
                                                           "PYTORCH_ALLOC_CONF",
                                                           "PYTORCH_CUDA_ALLOC_CONF",
                                                           "max_split_size",
                                                           "garbage_collection_threshold",
                                                           "expandable_segments",
                                                           "roundup_power2_divisions",
                                                           "alloc",
                                                           "free_requested",
                                                           "free_completed",
                                                           "segment_alloc",
                                                           "segment_free",
                                                           "segment_map",
                                                           "segment_unmap",
                                                           "oom",
                                                           "snapshot",
                                                           "active_allocated",
                                                           "active_pending_free",
                                                           "active_awaiting_free",
                                                           "inactive",
                                                           "small",
                                                           "large"};

/// Gives the words their numbers; before any other string.
inline void add_to(StringTable& strings) {
  for (const auto w : words) strings.add(w);
}

}  // namespace vlmest::diagnose::word
