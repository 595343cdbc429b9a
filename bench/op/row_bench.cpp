// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/norm/norm.hpp>
#include <kernels/softmax/softmax.hpp>

namespace vlmest::bench {

Prepared prepare_softmax(const Point& p, cudaStream_t) {
  const Softmax op = std::get<Softmax>(read_op(p, 90).op);
  const Elements n{checked_mul(op.rows, op.width)};
  return {.operands = {input(n, op.in), output(n, op.out)},
          .call = [kernel = kernels::FusedSoftmax(op)](std::span<void* const> x, void*, cudaStream_t s) {
            kernel({.x = x[0], .y = x[1]}, s);
          }};
}

/// A layer norm writes its statistics as well, as aten's does; an RMS norm has no bias and keeps no mean.
Prepared prepare_norm(const Point& p, cudaStream_t) {
  const Norm op = std::get<Norm>(read_op(p, 90).op);
  const bool layer = op.kind == Norm::Kind::layer_norm;
  const Elements n{checked_mul(op.rows, op.width)};
  const Elements rows(op.rows), width(op.width);
  Prepared r;
  r.operands = {input(n, op.dtype), output(n, op.dtype), input(width, op.dtype), output(rows, DType::fp32)};
  if (layer) {
    r.operands.push_back(input(width, op.dtype));
    r.operands.push_back(output(rows, DType::fp32));
  }
  r.call = [kernel = kernels::FusedNorm(op), layer](std::span<void* const> x, void*, cudaStream_t s) {
    kernel({.x = x[0],
            .weight = x[2],
            .bias = layer ? x[4] : nullptr,
            .y = x[1],
            .mean = layer ? static_cast<float*>(x[5]) : nullptr,
            .rstd = static_cast<float*>(x[3])},
           s);
  };
  return r;
}

}  // namespace vlmest::bench
