// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/matmul/cublaslt_matmul.hpp>

namespace vlmest::bench {

namespace {

/// How the chosen kernel goes over the result. Algorithms 23 and 24 are CUTLASS' kernels; of the others, whose names
/// begin with nvjet, bit 1 of the custom option says that bands are of columns (5,083 kernels traced on sm_90 with
/// cuBLASLt 13.1 all agree).
std::optional<TileWalk> walk(const kernels::MatmulAlgorithm& a) {
  if (a.tile_m == 0 || a.tile_n == 0) return std::nullopt;
  const bool cutlass = a.id == 23 || a.id == 24;
  return TileWalk{.tile_m = a.tile_m,
                  .tile_n = a.tile_n,
                  .cluster_m = std::max(1, a.cluster_m),
                  .cluster_n = std::max(1, a.cluster_n),
                  .split = std::max(1, a.split_k),
                  .column_bands = cutlass || (a.custom & 2) != 0,
                  .turns = !cutlass};
}

}  // namespace

/// cublaslt: what the heuristic puts first; cublaslt_best: the fastest of several that it offers.
Prepared prepare_linear(const Point& p, cudaStream_t stream) {
  using namespace kernels;
  const Matmul op = std::get<Matmul>(read_op(p, 90).op);
  CublasLtOptions options;
  if (p.variant == "cublaslt_best") options.choice = CublasLtOptions::Choice::best;
  const auto call = std::make_shared<CublasLtMatmul>(op, options);
  call->tune(stream);

  const auto elements = [&](std::int64_t a, std::int64_t b) {
    return Elements(checked_mul(op.batch, checked_mul(a, b)));
  };
  Prepared r;
  r.operands = {input(elements(op.m, op.k), op.dtype), input(elements(op.n, op.k), op.dtype),
                output(elements(op.m, op.n), result_type(op.dtype))};
  if (op.bias) r.operands.push_back(input(Elements(op.n), result_type(op.dtype)));
  r.workspace = call->workspace();
  r.walk = walk(call->algorithm());
  r.call = [call, bias = op.bias](std::span<void* const> x, void* workspace, cudaStream_t s) {
    (*call)({.a = x[0], .b = x[1], .bias = bias ? x[3] : nullptr, .out = x[2], .workspace = workspace}, s);
  };
  return r;
}

}  // namespace vlmest::bench
