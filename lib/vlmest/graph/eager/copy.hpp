// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/graph/eager/unary.hpp>

/// Copies: to another type, to row-major order, for a write in place.
namespace vlmest::eager {

/// tensor.to(dtype): the same tensor where the type is already that, else a converting copy of the same layout.
inline Value to(Value a, DType t) {
  if (a.dtype() == t) return a;
  const GradEdge e = edge(a);
  Value r = pointwise("_to_copy", t, std::move(a));
  differentiable(r, "ToCopyBackward0", {e},
                 [from = e.dtype](Gradients& g) { g.out[0] = to(std::move(g.in[0]), from); });
  return r;
}
/// tensor.to(dtype, memory_format=torch.contiguous_format): a converting copy is row-major; without one the layout
/// stays, whatever it is.
inline Value to_row_major(Value a, DType t) {
  if (a.dtype() == t) return a;
  Builder& b = a.builder();
  const GradEdge e = edge(a);
  const Shape strides = contiguous_strides(a.shape());
  const Bytes in = data_bytes(a), out = size_of(numel(a.shape()), t);
  const MemoryOp op{.read = in,
                    .written = out,
                    .dtype = t,
                    .kernels = pieces(std::max(in, out)),
                    .access = access(a.shape(), strides, t, a),
                    .elements = numel(a.shape())};
  Value r = emit1(b, "_to_copy", op, b.result(t, a.shape(), "_to_copy"), {}, a);
  differentiable(r, "ToCopyBackward0", {e},
                 [from = e.dtype](Gradients& g) { g.out[0] = to(std::move(g.in[0]), from); });
  return r;
}
/// How a copy into a tensor of these strides walks.
inline Access copy_access(const Value& source, const Shape& strides) {
  return access(source.shape(), strides, source.dtype(), source);
}
/// tensor.contiguous(): the same tensor where it is, else a row-major copy.
inline Value clone_contiguous(Value a) {
  Builder& b = a.builder();
  const TensorId r = b.result(a.dtype(), a.shape(), "clone");
  const Bytes n = data_bytes(a);
  const GradEdge e = edge(a);
  const MemoryOp op{.read = n,
                    .written = n,
                    .dtype = a.dtype(),
                    .kernels = n > Bytes{} ? 1 : 0,
                    .access = copy_access(a, contiguous_strides(a.shape())),
                    .elements = numel(a.shape())};
  Value copy = emit1(b, "clone", op, r, {}, a);
  differentiable(copy, "CloneBackward0", {e}, [](Gradients& g) { g.out[0] = std::move(g.in[0]); });
  return copy;
}
inline Value contiguous(Value a) { return is_contiguous(a) ? a : clone_contiguous(std::move(a)); }
/// Kernels of a copy within a type: a contiguous source into a contiguous target goes by cudaMemcpyAsync
/// (aten/src/ATen/native/cuda/Copy.cu, copy_device_to_device).
inline int copy_kernels(const Value& source) { return is_contiguous(source) ? 0 : pieces(data_bytes(source)); }
/// tensor.clone(): a copy of the same layout.
inline Value clone(Value a) {
  Builder& b = a.builder();
  const Bytes n = data_bytes(a);
  const Shape strides = strides_like(a.tensor(), a.shape());
  const TensorId r = b.result(a.dtype(), a.shape(), strides, "clone");
  const GradEdge e = edge(a);
  const MemoryOp op{
      .read = n, .written = n, .dtype = a.dtype(), .kernels = copy_kernels(a), .access = copy_access(a, strides)};
  Value copy = emit1(b, "clone", op, r, {}, a);
  differentiable(copy, "CloneBackward0", {e}, [](Gradients& g) { g.out[0] = std::move(g.in[0]); });
  return copy;
}

/// a /= b; what the gradient of b needs of a is copied first.
inline Value div_(Value a, Value b) {
  const GradEdge ea = edge(a), eb = edge(b);
  Value before;
  if (eb) {
    NoGrad copy(a.builder());
    before = clone(a);
  }
  const Value sb = saved(b, ea || eb);
  Value r = pointwise_("div_.Tensor", std::move(a), std::move(b));
  differentiable(r, "DivBackward0", {ea, eb}, [before, sb](Gradients& g) { div_backward(g, before, sb); });
  return r;
}

}  // namespace vlmest::eager
