// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <vlmest/graph/builder.hpp>

/// Ops over lists of tensors, torch._foreach_*: what optimizers step all parameters with at once.
namespace vlmest {

/// How many tensors one kernel takes where each element is read from or written to `lists` lists; fewer where every
/// tensor has a number of its own (aten/src/ATen/native/cuda/MultiTensorApply.cuh, depth_to_max_tensors and
/// depth_to_max_tensors_scalarlist).
constexpr int tensors_of_kernel(int lists, bool numbers) {
  constexpr std::array<int, 5> plain{110, 64, 48, 36, 30}, with_numbers{96, 64, 48, 36, 30};
  const auto i = static_cast<std::size_t>(std::clamp(lists, 1, 5) - 1);
  return numbers ? with_numbers[i] : plain[i];
}

/// Kernels of one such op: each works on up to 320 pieces of 65,536 elements (multi_tensor_apply).
inline int foreach_kernels(std::span<const Elements> sizes, int lists, bool numbers = false) {
  const int most = tensors_of_kernel(lists, numbers);
  std::int64_t kernels = 0, blocks = 0;
  int tensors = 0;
  for (const Elements n : sizes) {
    if (n == Elements(0)) continue;
    ++tensors;
    std::int64_t left = (n.value() + 65535) / 65536;
    while (left > 0) {
      const std::int64_t taken = std::min<std::int64_t>(left, 320 - blocks);
      blocks += taken;
      left -= taken;
      const bool full = blocks == 320 || (tensors == most && left == 0);
      if (!full) continue;
      ++kernels;
      blocks = 0;
      tensors = left == 0 ? 0 : 1;
    }
  }
  if (blocks > 0) ++kernels;
  return static_cast<int>(kernels);
}

/// The tensors of one list with what an op over them costs.
struct TensorList {
  std::vector<Elements> sizes;
  Bytes bytes{};  ///< of one list
};

/// An op in place: `reads` and `writes` lists of the parameters' size, in a kernel of `lists` lists.
inline void foreach_op(Builder& b, const char* name, const TensorList& l, int reads, int writes, int lists,
                       bool numbers = false, std::span<const TensorId> results = {}) {
  const MemoryOp op{
      .read = l.bytes * reads, .written = l.bytes * writes, .kernels = foreach_kernels(l.sizes, lists, numbers)};
  b.emit({name, AtenTrait::lists}, op, {}, results);
}

}  // namespace vlmest
