// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// Systems of triangular matrices, solved in place of copies of their right-hand sides: one row after the other. aten
/// linalg_solve_triangular.
struct TriangularSolve {
  std::int64_t batch = 1;
  std::int64_t rows = 1;     ///< of each matrix, which is square
  std::int64_t columns = 1;  ///< of each right-hand side
  DType dtype = DType::fp32;
  bool packed = false;  ///< the matrices are copied first
  bool listed = true;   ///< one call takes all matrices by two lists of addresses; else each has a call
};

/// No FLOPs: torch's counter has no formula for it (torch/utils/flop_counter.py), with which FLOPs are compared; what
/// is performed takes time.
constexpr Cost cost(const TriangularSolve& o) {
  const auto size = [&](std::int64_t n) {
    return size_of(Elements(checked_mul(checked_mul(o.batch, o.rows), n)), o.dtype);
  };
  const Bytes sides = size(o.columns), matrices = size(o.rows), packed = o.packed ? matrices : Bytes{};
  Cost r;
  r.uncounted = flops(Macs(checked_mul(checked_mul(checked_mul(o.batch, o.rows), o.rows), o.columns) / 2));
  r.read = sides * 2 + matrices + packed;
  r.written = sides * 2 + packed;
  r.workspace = (o.listed ? size_of(Elements(o.batch), DType::int64) * 2 : Bytes{}) + packed;
  r.engine = Engine::cuda_core;
  r.dtype = o.dtype;
  r.kernels = (o.listed ? 4 : 1 + static_cast<int>(o.batch)) + (o.packed ? 1 : 0);
  return r;
}

}  // namespace vlmest
