// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/matmul/cublaslt_matmul.hpp>

namespace vlmest::bench {

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
  r.call = [call, bias = op.bias](std::span<void* const> x, void* workspace, cudaStream_t s) {
    (*call)({.a = x[0], .b = x[1], .bias = bias ? x[3] : nullptr, .out = x[2], .workspace = workspace}, s);
  };
  return r;
}

}  // namespace vlmest::bench
