// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/reduce.hpp>

/// Sums along a dimension that autograd follows.
namespace vlmest::eager {

/// torch.flip of the last dimension: one kernel.
inline Value flip(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes n = data_bytes(a);
  const TensorId r = b.result(t, a.shape(), strides_like(a.tensor(), a.shape()), "flip");
  return emit1(b, "flip", MemoryOp{.read = n, .written = n, .dtype = t, .access = Access::strided}, r, {}, a);
}

/// cumsum of floating-point rows over the last dimension: a kernel without scratch for several rows; what is not
/// row-major is packed first (aten/src/ATen/native/cuda/ScanKernels.cpp).
inline Value running_sum(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes n = data_bytes(a), packed = is_contiguous(a) ? Bytes{} : n;
  const bool row = numel(a.shape()).value() == a.size(-1);
  const Bytes scan = row ? scan_workspace(a.size(-1), bits(t) / 8) : Bytes{};
  const TensorId r = b.result(t, a.shape(), "cumsum");
  const GradEdge e = edge(a);
  const MemoryOp op{.read = n + packed,
                    .written = n + packed,
                    .workspace = packed + scan,
                    .dtype = t,
                    .kernels = (row ? 2 : 1) + (packed > Bytes{} ? 1 : 0)};
  Value sums = emit1(b, "cumsum", op, r, {packed, scan}, a);
  // FunctionsManual.cpp, cumsum_backward: one expression, whose temporaries live to its end.
  differentiable(sums, "CumsumBackward0", {e}, [](Gradients& g) {
    if (g.in[0].size(-1) == 1) {
      g.out[0] = g.in[0];
      return;
    }
    Value turned = flip(g.in[0]);
    Value summed = running_sum(turned);
    g.out[0] = flip(summed);
  });
  return sums;
}

/// The same over the last dimension but one, of which each column is a scan of its own: no scratch beside a copy of
/// what is not row-major.
inline Value running_sum_down(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes n = data_bytes(a), packed = is_contiguous(a) ? Bytes{} : n;
  const TensorId r = b.result(t, a.shape(), "cumsum");
  const GradEdge e = edge(a);
  const MemoryOp op{
      .read = n + packed, .written = n + packed, .workspace = packed, .dtype = t, .kernels = packed > Bytes{} ? 2 : 1};
  Value sums = emit1(b, "cumsum", op, r, {packed}, a);
  differentiable(sums, "CumsumBackward0", {e}, [](Gradients& g) {
    if (g.in[0].size(-2) == 1) {
      g.out[0] = g.in[0];
      return;
    }
    Value turned = flip(g.in[0]);
    Value summed = running_sum_down(turned);
    g.out[0] = flip(summed);
  });
  return sums;
}

}  // namespace vlmest::eager
