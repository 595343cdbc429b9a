// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <vlmest/graph/eager/assign.hpp>

/// The package causal-conv1d (1.6.1, causal_conv1d/causal_conv1d_interface.py and cpp_functions.py): a short
/// convolution of each channel by itself with its activation in one kernel, which moves each operand once.
namespace vlmest::eager {

namespace causal_conv1d {

/// Taps that its kernels have, and what channels that lie side by side must be a multiple of (csrc/causal_conv1d.cpp).
inline constexpr std::int64_t fewest_taps = 2, most_taps = 4, channel_step = 8;

/// Whether the tokens, or else the channels, of x[B, channels, S] lie side by side, as the kernels need one to.
inline bool is_readable(const Value& x) { return x.tensor().strides[2] == 1 || x.tensor().strides[1] == 1; }
inline Value readable(Value x) { return is_readable(x) ? std::move(x) : contiguous(std::move(x)); }

/// The package's op, which returns nothing.
inline void call(const char* name, Bytes read, Bytes written, std::initializer_list<const Value*> operands) {
  std::array<TensorId, 6> ids{};
  std::size_t n = 0;
  for (const Value* v : operands)
    if (*v) ids.at(n++) = v->id();
  Builder& b = (*operands.begin())->builder();
  const DType t = (*operands.begin())->dtype();
  b.emit(name, MemoryOp{.read = read, .written = written, .dtype = t, .access = Access::packaged},
         std::span(ids).first(n), {});
}

}  // namespace causal_conv1d

/// causal_conv1d_fn: x[B, channels, S], weight[channels, taps] -> the same shape, with SiLU or without.
inline Value causal_conv1d_fn(Value arg, const Value& weight, const Value& bias) {
  using namespace causal_conv1d;
  const GradEdge ex = edge(arg), ew = edge(weight), eb = edge(bias);
  const bool trains = ex || ew || eb;
  const Value x = readable(detached(arg)), w = detached(weight), b = bias ? detached(bias) : Value();
  Value y = empty_like(x);
  call("_causal_conv1d_fwd_cpp", data_bytes(x) + data_bytes(w), data_bytes(y), {&x, &w, &b, &y});
  differentiable(y, "CausalConv1dFnBackward", {ex, ew, eb},
                 [sx = saved(x, trains), sw = saved(w, trains), sb = saved(b, trains)](Gradients& g) {
                   const Value gradient = readable(g.in[0]);
                   const Value dx = empty_like(sx);
                   Value dw = zeros_like(sw, DType::fp32), db = sb ? zeros_like(sb, DType::fp32) : Value();
                   call("_causal_conv1d_bwd_cpp", data_bytes(sx) * 2 + data_bytes(sw), data_bytes(dx) + data_bytes(dw),
                        {&sx, &sw, &sb, &gradient, &dx, &dw});
                   dw = to(std::move(dw), sw.dtype());
                   if (sb) db = to(std::move(db), sb.dtype());
                   if (g.wants(0)) g.out[0] = dx;
                   if (g.wants(1)) g.out[1] = std::move(dw);
                   if (sb && g.wants(2)) g.out[2] = std::move(db);
                 });
  return y;
}

/// causal_conv1d_update: one token x[B, channels, 1] behind those of the state[B, channels, taps], which moves on by
/// it.
inline Value causal_conv1d_update(const Value& x, const Value& state, const Value& weight, const Value& bias) {
  using namespace causal_conv1d;
  Value y = empty_like(x);
  call("_causal_conv1d_update_cpp", data_bytes(x) + data_bytes(state) + data_bytes(weight),
       data_bytes(y) + data_bytes(state), {&x, &state, &weight, &bias, &y});
  return y;
}

}  // namespace vlmest::eager
