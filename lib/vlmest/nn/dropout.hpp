// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// torch.nn.functional.dropout with a probability above zero: nothing at inference; in training mode one kernel draws
/// the boolean mask and applies it (aten/src/ATen/native/cuda/Dropout.cu, native_dropout).
inline Value dropout(Context& c, Value arg) {
  using namespace eager;
  if (!c.plan.dropout) return arg;
  Value x = std::move(arg);
  const Bytes n = data_bytes(x);
  const std::array<TensorId, 2> outs{c.b.result(x.dtype(), x.shape(), strides_like(x.tensor(), x.shape()), "dropout"),
                                     c.b.result(DType::boolean, x.shape(), "dropout_mask")};
  const std::array<TensorId, 1> ins{x.id()};
  const MemoryOp op{.read = n, .written = n + size_of(numel(x.shape()), DType::boolean), .dtype = x.dtype()};
  c.b.emit("native_dropout", op, ins, outs);
  Value kept(c.b, outs[0]);
  Value mask(c.b, outs[1]);
  const GradEdge e = edge(x);
  differentiable(kept, "NativeDropoutBackward0", {e}, [mask = saved(mask, static_cast<bool>(e))](Gradients& g) {
    const DType t = g.in[0].dtype();
    g.out[0] = pointwise("native_dropout_backward", t, g.in[0], mask);
  });
  return kept;
}

}  // namespace vlmest
