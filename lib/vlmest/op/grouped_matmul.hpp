// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// Rows sorted by group, each group times its own matrix: out[rows, n] = a[rows, k] x b[group(row), k, n]
/// (torch.nn.functional.grouped_mm; the experts of a mixture). Or the products of each group's rows, out[group, k, n] =
/// a[k, rows] x b[rows, n] over the rows of the group: the gradient of its matrix.
struct GroupedMatmul {
  std::int64_t rows = 1;  ///< of all groups together
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t groups = 1;
  std::int64_t active = 1;  ///< groups that have rows: only their matrices are read
  bool per_group = false;   ///< a matrix of every group is the result
  DType dtype = DType::bf16;
  Bytes stored{};  ///< of one group's matrix with its scales, where it is stored in a type of its own
  Bytes workspace{};
  int kernels = 1;
};

constexpr Macs macs(const GroupedMatmul& o) { return Macs(checked_mul(o.rows, checked_mul(o.n, o.k))); }

/// FLOPs: torch/utils/flop_counter.py (2.11) has no formula for _grouped_mm, so a counted run shows none; what the
/// product really takes stands in `uncounted`.
constexpr Cost cost(const GroupedMatmul& o) {
  Cost r;
  r.uncounted = flops(macs(o));
  const auto bytes = [&](std::int64_t n, std::int64_t each) {
    return size_of(Elements(checked_mul(n, each)), o.dtype);
  };
  const std::int64_t matrix = checked_mul(o.n, o.k);
  const Bytes matrices = o.stored > Bytes{} ? o.stored * o.active : bytes(o.active, matrix);
  r.read = bytes(o.rows, o.k) + (o.per_group ? bytes(o.rows, o.n) : matrices);
  r.written = o.per_group ? bytes(o.groups, matrix) : bytes(o.rows, o.n);
  r.workspace = o.workspace;
  r.engine = o.dtype == DType::fp32 || o.dtype == DType::fp64 ? Engine::cuda_core : Engine::tensor_core;
  r.dtype = o.dtype;
  r.kernels = o.kernels;
  return r;
}

}  // namespace vlmest
