// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/allocator/config.hpp>

namespace vlmest::allocator {

/// Keys of torch 2.11's PYTORCH_ALLOC_CONF (c10/core/AllocatorConfig.h, c10/cuda/CUDAAllocatorConfig.cpp). The last row
/// has no effect on where device memory lies; its values are not looked at.
inline constexpr std::array<std::string_view, 17> allocator_keys{
    "max_split_size_mb", "max_non_split_rounding_mb", "large_segment_size_mb", "roundup_power2_divisions",
    "garbage_collection_threshold", "per_process_memory_fraction", "expandable_segments", "backend",
    //
    "pinned_use_background_threads", "pinned_use_cuda_host_register", "pinned_use_hip_host_register",
    "pinned_num_register_threads", "pinned_reserve_segment_size_mb", "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc", "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom"};

/// Reads PYTORCH_ALLOC_CONF (or PYTORCH_CUDA_ALLOC_CONF) as torch 2.11 does. `base` gives what the text cannot say: the
/// device's memory. Throws Error naming the key: unknown ones with the nearest known one, values out of range, and
/// backend:cudaMallocAsync, whose pool is the driver's and is not modelled.
AllocatorConfig parse_allocator_config(std::string_view settings, const AllocatorConfig& base = {});

}  // namespace vlmest::allocator

#ifndef VLMEST_COMPILED
#include <vlmest/allocator/impl/config_text.hpp>
#endif
