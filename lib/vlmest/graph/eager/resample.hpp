// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/autocast.hpp>

/// Resizing of feature maps.
namespace vlmest::eager {

/// Strides of x[N, C, H, W] with the channels next to each other.
inline Shape channels_last_strides(const Shape& s) {
  return {checked_mul(s[1], checked_mul(s[2], s[3])), 1, checked_mul(s[3], s[1]), s[1]};
}

/// The backward of a resampling of x[N, C, H, W]: zeros, to which each element of the gradient is added; a gradient
/// with gaps is copied first, and one whose channels lie next to each other gives a result of that layout where
/// `keeps_layout` (UpSampleBilinear2d.cu has a kernel for it, UpSampleBicubic2d.cu none).
inline void differentiable_resampling(const Value& out, const char* name, const char* backward, const GradEdge& e,
                                      bool keeps_layout = false) {
  differentiable(out, name, {e}, [backward, whole = e.shape, keeps_layout](Gradients& g) {
    Builder& b = g.in[0].builder();
    const DType t = g.in[0].dtype();
    const bool last =
        keeps_layout && !is_contiguous(g.in[0]) && g.in[0].tensor().strides == channels_last_strides(g.in[0].shape());
    const Bytes copy = is_contiguous(g.in[0]) || last ? Bytes{} : data_bytes(g.in[0]), size = size_of(numel(whole), t);
    const TensorId r = last ? b.result(t, whole, channels_last_strides(whole), backward) : b.result(t, whole, backward);
    const MemoryOp op{.read = data_bytes(g.in[0]) + copy,
                      .written = size * 2 + copy,
                      .workspace = copy,
                      .dtype = t,
                      .kernels = copy > Bytes{} ? 3 : 2};
    g.out[0] = emit1(b, backward, op, r, {copy}, g.in[0]);
  });
}

/// The result [N, C, rows, cols] of a resampling: row-major, or with the channels next to each other where those of x
/// are (aten/src/ATen/native/UpSampleBilinear2d.cpp, UpSampleBicubic2d.cpp: suggest_memory_format).
inline TensorId resampled(const Value& x, const Shape& s, const char* name) {
  Builder& b = x.builder();
  if (!is_contiguous(x) && x.tensor().strides == channels_last_strides(x.shape()))
    return b.result(x.dtype(), s, channels_last_strides(s), name);
  return b.result(x.dtype(), s, name);
}

/// torch.nn.functional.interpolate(x, size, mode="bilinear") of x[N, C, H, W]: one kernel that reads any strides
/// (aten/src/ATen/native/cuda/UpSampleBilinear2d.cu).
inline Value upsample_bilinear2d(Value x, std::int64_t rows, std::int64_t cols) {
  const AutocastCall call(CastPolicy::fp32, x);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const TensorId r = resampled(x, s, "upsample_bilinear2d");
  const GradEdge e = edge(x);
  Value out = emit1(b, "upsample_bilinear2d",
                    MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t}, r, {}, x);
  differentiable_resampling(out, "UpsampleBilinear2DBackward0", "upsample_bilinear2d_backward", e, true);
  return out;
}

/// The same with mode="bicubic" (aten/src/ATen/native/cuda/UpSampleBicubic2d.cu).
inline Value upsample_bicubic2d(Value x, std::int64_t rows, std::int64_t cols) {
  const AutocastCall call(CastPolicy::fp32, x);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const TensorId r = resampled(x, s, "upsample_bicubic2d");
  const GradEdge e = edge(x);
  Value out = emit1(b, "upsample_bicubic2d",
                    MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t}, r, {}, x);
  differentiable_resampling(out, "UpsampleBicubic2DBackward0", "upsample_bicubic2d_backward", e);
  return out;
}

/// torch.nn.functional.grid_sample of x[N, C, H, W] at at[N, R, S, 2]: one kernel that reads any strides; the result
/// [N, C, R, S] is row-major. Each thread has one position and goes through its channels, with 16 bicubic taps each
/// (aten/src/ATen/native/cuda/GridSampler.cu).
inline Value grid_sampler_2d(Value x, Value at) {
  const AutocastCall call(CastPolicy::widest, x, at);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), at.size(1), at.size(2)};
  const TensorId r = b.result(t, s, "grid_sampler_2d");
  const MemoryOp op{.read = data_bytes(x) + data_bytes(at),
                    .written = size_of(numel(s), t),
                    .dtype = t,
                    .access = Access::gather,
                    .dependent = checked_mul(x.size(1), 16)};
  const GradEdge e = edge(x);
  const Value sx = saved(x, static_cast<bool>(e)), sat = saved(at, static_cast<bool>(e));
  Value out = emit1(b, "grid_sampler_2d", op, r, {}, x, at);
  // grid_sampler_2d_backward_cuda: the grid's gradient is allocated, needed or not.
  differentiable(out, "GridSampler2DBackward0", {e}, [sx, sat, t](Gradients& g) {
    Builder& to = sx.builder();
    const Bytes whole = data_bytes(sx), part = data_bytes(g.in[0]);
    const std::array<TensorId, 2> outs{to.result(t, sx.shape(), "grid_sampler_2d_backward"),
                                       to.result(sat.dtype(), sat.shape(), "grid gradient")};
    const std::array<TensorId, 3> ins{g.in[0].id(), sx.id(), sat.id()};
    to.emit("grid_sampler_2d_backward",
            MemoryOp{.read = part + whole + data_bytes(sat),
                     .written = whole + part,
                     .dtype = t,
                     .kernels = 2,
                     .access = Access::gather,
                     .dependent = checked_mul(sx.size(1), 16)},
            ins, outs);
    g.out[0] = Value(to, outs[0]);
    const Value grid(to, outs[1]);
  });
  return out;
}

}  // namespace vlmest::eager
