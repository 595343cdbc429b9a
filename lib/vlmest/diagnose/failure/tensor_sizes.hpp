// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <vlmest/allocator/config.hpp>
#include <vlmest/diagnose/evidence/oom/message.hpp>

/// From "Tried to allocate" back to the tensor. torch's caching allocator prints the segment that it asked the driver
/// for, with and without expandable_segments (alloc_size in DeviceCachingAllocator::malloc, c10/cuda/
/// CUDACachingAllocator.cpp; the same in c10/xpu and torch_npu): 2 MiB for tensors up to 1 MiB, 20 MiB below 10 MiB,
/// above that the next multiple of 2 MiB. cudaMallocAsync prints the tensor's bytes (mallocAsync in
/// c10/cuda/CUDAMallocAsyncAllocator.cpp), MPS a multiple of the page (16 KiB). The other libraries print what they
/// were asked for. Assumed: roundup_power2_divisions and large_segment_size_mb at their defaults.
namespace vlmest::diagnose {

enum class SizeRule : std::uint8_t {
  exact_bytes,    ///< printed in bytes, not rounded
  as_printed,     ///< not rounded: any size that prints so
  small_segment,  ///< 2 MiB: any tensor up to 1 MiB
  large_segment,  ///< 20 MiB: any tensor of 1 to 10 MiB, or one of 18 to 20 MiB
  multiple,       ///< of 2 MiB
  page,           ///< of 16 KiB
  old_rounding    ///< no multiple of 2 MiB prints so: torch before 1.1 rounded to 128 KiB
};

/// Every tensor that the figure allows lies in [low, high]; tensor_allowed() says which of these are.
struct TensorSizes {
  Bytes low, high;
  SizeRule rule = SizeRule::as_printed;
  bool holds(Bytes b) const { return low <= b && b <= high; }
  /// 2 MiB and 20 MiB stand for any small tensor.
  bool telling() const { return rule != SizeRule::small_segment && rule != SizeRule::large_segment; }
};

/// Whether the figure is a segment's: torch's words, of whatever device.
inline bool prints_segments(const OomMessage& m) {
  using B = MemoryBackend;
  return m.backend == B::cuda || m.backend == B::hip || m.backend == B::xpu || m.backend == B::npu ||
         (m.backend == B::unknown && m.text.find("ried to allocate") != std::string::npos);
}

/// Nothing where the message does not say what was asked for.
std::optional<TensorSizes> tensor_sizes(const OomMessage& m);

/// Whether a tensor of so many bytes leads to the printed figure.
inline bool tensor_allowed(const OomMessage& m, Bytes tensor) {
  const auto sizes = tensor_sizes(m);
  if (!sizes || !sizes->holds(tensor)) return false;
  if (!prints_segments(m) || sizes->rule == SizeRule::old_rounding) return true;
  const allocator::AllocatorConfig c;
  return m.requested->holds(allocator::segment_size(c, allocator::round_size(c, tensor)));
}

/// Whether a tensor that is known leads to the printed figure under some roundup_power2_divisions.
inline bool rounds_up_to(const OomMessage& m, Bytes tensor) {
  if (!m.requested || !prints_segments(m)) return false;
  for (std::int32_t divisions = 2; allocator::min_block_size * divisions < tensor.value() && divisions <= 1 << 16;
       divisions *= 2) {
    allocator::AllocatorConfig c;
    c.roundup_power2_divisions.fill(divisions);
    if (m.requested->holds(allocator::segment_size(c, allocator::round_size(c, tensor)))) return true;
  }
  return false;
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/failure/impl/tensor_sizes.hpp>
#endif
