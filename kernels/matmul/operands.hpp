// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vlmest::kernels {

/// How the second factor of a Matmul lies in memory, row by row.
enum class WeightLayout : std::uint8_t {
  linear,  ///< [batch, n, k]: torch.nn.Linear's weight, out = a x b^T
  mm,      ///< [batch, k, n]: aten mm and bmm, out = a x b
};

/// Device addresses; everything is row-major without gaps.
struct MatmulOperands {
  const void* a = nullptr;     ///< [batch, m, k]
  const void* b = nullptr;     ///< see WeightLayout
  const void* bias = nullptr;  ///< [n] in the type of `out`, added to every row; null where the op has none
  void* out = nullptr;         ///< [batch, m, n]
  void* workspace = nullptr;   ///< as many bytes as the call's workspace() says; null where that is none
};

}  // namespace vlmest::kernels
