// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/emit.hpp>
#include <vlmest/graph/eager/pointwise.hpp>

namespace vlmest::eager {

/// The gradient is row-major, whatever that of the result is, but for maps with channels last (Dropout.cu,
/// dropout_backward_cuda).
inline Value native_dropout_backward(Value gradient, Value mask) {
  const DType t = gradient.dtype();
  if (gradient.shape().rank() == 4)
    return pointwise("native_dropout_backward", t, std::move(gradient), std::move(mask));
  Builder& b = gradient.builder();
  const Bytes n = data_bytes(gradient);
  const TensorId r = b.result(t, gradient.shape(), "native_dropout_backward");
  const MemoryOp op{.read = n + data_bytes(mask), .written = n, .dtype = t};
  return emit1(b, "native_dropout_backward", op, r, {}, gradient, mask);
}

/// torch.nn.functional.dropout in training mode with a probability above zero: one kernel draws the boolean mask and
/// applies it (aten/src/ATen/native/cuda/Dropout.cu, native_dropout).
inline Value native_dropout(Value x) {
  Builder& b = x.builder();
  const Bytes n = data_bytes(x);
  const std::array<TensorId, 2> outs{b.result(x.dtype(), x.shape(), strides_like(x.tensor(), x.shape()), "dropout"),
                                     b.result(DType::boolean, x.shape(), "dropout_mask")};
  const std::array<TensorId, 1> ins{x.id()};
  const MemoryOp op{.read = n, .written = n + size_of(numel(x.shape()), DType::boolean), .dtype = x.dtype()};
  b.emit("native_dropout", op, ins, outs);
  Value kept(b, outs[0]);
  Value mask(b, outs[1]);
  const GradEdge e = edge(x);
  differentiable(kept, "NativeDropoutBackward0", {e}, [mask = saved(mask, static_cast<bool>(e))](Gradients& g) {
    g.out[0] = native_dropout_backward(g.in[0], mask);
  });
  return kept;
}

}  // namespace vlmest::eager
