// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/bucketize.hpp>
#include <vlmest/graph/eager/pad.hpp>
#include <vlmest/graph/eager/product.hpp>

/// Windows over a sequence and what gates them: what conformers run beside products and convolutions.
namespace vlmest::eager {

/// torch.nn.functional.pad of one dimension on both sides with a constant: a filled tensor and a copy into it.
inline Value pad_sides(Value a, int dim, std::int64_t before, std::int64_t after) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const std::int64_t n = a.size(dim);
  Shape s = a.shape();
  s[wrap(dim, s.rank())] = checked_add(n, checked_add(before, after));
  const Bytes in = data_bytes(a);
  const GradEdge e = edge(a);
  const MemoryOp op{.read = in, .written = size_of(numel(s), t) + in, .dtype = t, .kernels = 2};
  Value padded = emit1(b, "constant_pad_nd", op, b.result(t, s, "constant_pad_nd"), {}, a);
  differentiable(padded, "ConstantPadNdBackward0", {e}, [dim, before, n](Gradients& g) {
    Value part = slice(g.in[0], dim, before, before + n);
    Builder& at = part.builder();
    const Bytes moved = data_bytes(part);
    const MemoryOp back{.read = moved, .written = moved, .dtype = part.dtype()};
    g.out[0] = emit1(at, "constant_pad_nd", back, at.result(part.dtype(), part.shape(), "constant_pad_nd"), {}, part);
  });
  return padded;
}

/// torch.nn.functional.glu over the last dimension: the first half times the sigmoid of the second.
inline Value glu(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  Shape s = a.shape();
  s[s.rank() - 1] /= 2;
  const GradEdge e = edge(a);
  const Value kept = saved(a, static_cast<bool>(e));
  const Bytes n = data_bytes(a);
  Value r =
      emit1(b, "glu", MemoryOp{.read = n, .written = size_of(numel(s), t), .dtype = t}, b.result(t, s, "glu"), {}, a);
  differentiable(r, "GluBackward0", {e}, [kept](Gradients& g) {
    Builder& at = kept.builder();
    const DType u = g.in[0].dtype();
    Value x = kept;
    const MemoryOp op{.read = data_bytes(x) + data_bytes(g.in[0]), .written = data_bytes(x), .dtype = u};
    g.out[0] = emit1(at, "glu_backward", op, at.result(u, x.shape(), "glu_backward"), {}, g.in[0], x);
  });
  return r;
}

/// a *= number.
inline Value scale_(Value a) {
  const GradEdge e = edge(a);
  const DType t = a.dtype();
  Value r = pointwise_("mul_.Tensor", std::move(a));
  differentiable(r, "MulBackward0", {e}, [t](Gradients& g) { g.out[0] = pointwise("mul.Tensor", t, g.in[0]); });
  return r;
}

/// torch.nn.functional.pad of the last two dimensions behind their ends.
inline Value pad_corner(Value a, std::int64_t rows, std::int64_t columns) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  Shape s = a.shape();
  s[s.rank() - 2] += rows;
  s[s.rank() - 1] += columns;
  const Bytes in = size_of(numel(a.shape()), t);
  const MemoryOp op{.read = in, .written = size_of(numel(s), t) + in, .dtype = t, .kernels = 2};
  return emit1(b, "constant_pad_nd", op, b.result(t, s, "constant_pad_nd"), {}, a);
}

/// self.gather(-1, index).
inline Value gather_last(Value self, Value index) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes moved = size_of(numel(index.shape()), t);
  const MemoryOp op{.read = moved + data_bytes(index), .written = moved, .dtype = t};
  return emit1(b, "gather", op, b.result(t, index.shape(), "gather"), {}, self, index);
}

}  // namespace vlmest::eager
