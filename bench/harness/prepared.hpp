// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <cuda_runtime.h>

#include <vlmest/analysis/matmul_traffic.hpp>
#include <vlmest/tensor/dtype.hpp>

namespace vlmest::bench {

/// A tensor that a call reads or writes, and what it holds before.
struct Operand {
  Elements elements{};
  DType dtype = DType::bf16;
  float low = -1, high = 1;  ///< uniform between these; integers are indices below `indices`
  std::int64_t indices = 0;  ///< of an index tensor: the numbers lie in [0, indices)
  bool output = false;       ///< written, not read: filled with NaN

  Bytes size() const { return size_of(elements, dtype); }
};

inline Operand input(Elements n, DType t) { return {.elements = n, .dtype = t}; }
inline Operand output(Elements n, DType t) { return {.elements = n, .dtype = t, .output = true}; }
inline Operand indices(Elements n, std::int64_t below) {
  return {.elements = n, .dtype = DType::int64, .indices = below};
}

/// An op made ready to be called on any operands: what bench/op/<op>_bench.cpp gives the harness.
struct Prepared {
  std::vector<Operand> operands;
  Bytes workspace{};             ///< scratch that the caller gives
  int launches = 4;              ///< kernels of one call, at most
  std::optional<TileWalk> walk;  ///< of a product's kernel, where the library tells its tile
  /// Puts one execution into the stream; `data` holds an address for each of `operands`.
  std::function<void(std::span<void* const> data, void* workspace, cudaStream_t stream)> call;
};

}  // namespace vlmest::bench
