// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/autocast.hpp>
#include <vlmest/graph/eager/channels_last.hpp>

/// Resizing of feature maps.
namespace vlmest::eager {

/// The backward of a resampling of x[N, C, L] or x[N, C, H, W]: zeros, to which each element of the gradient is added;
/// a gradient with gaps is copied first, and one whose channels lie next to each other gives a result of that layout
/// where `keeps_layout` (UpSampleBilinear2d.cu has a kernel for it, UpSampleBicubic2d.cu none).
inline void differentiable_resampling(const Value& out, const char* name, const char* backward, const GradEdge& e,
                                      bool keeps_layout = false) {
  differentiable(out, name, {e}, [backward, whole = e.shape, keeps_layout](Gradients& g) {
    Builder& b = g.in[0].builder();
    const DType t = g.in[0].dtype();
    const bool last = keeps_layout && is_channels_last(g.in[0]);
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
  return is_channels_last(x) ? b.result(x.dtype(), s, channels_last_strides(s), name) : b.result(x.dtype(), s, name);
}

/// torch.nn.functional.interpolate(x, size, mode="nearest") of x[N, C, H, W], row-major
/// (aten/src/ATen/native/cuda/UpSampleNearest2d.cu).
inline Value upsample_nearest2d(Value x, std::int64_t rows, std::int64_t cols) {
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const GradEdge e = edge(x);
  const MemoryOp op{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t};
  Value r = emit1(x.builder(), "upsample_nearest2d", op, resampled(x, s, "upsample_nearest2d"), {}, x);
  differentiable_resampling(r, "UpsampleNearest2DBackward0", "upsample_nearest2d_backward", e);
  return r;
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

/// The same with antialias=True. The kernel reads row-major: an argument that is not is copied
/// (aten/src/ATen/native/cuda/UpSampleBilinear2d.cu, upsample_gen2d_aa_out_cuda_template).
inline Value upsample_bilinear2d_aa(Value x, std::int64_t rows, std::int64_t cols) {
  const AutocastCall call(CastPolicy::fp32, x);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const Bytes copy = is_contiguous(x) ? Bytes{} : size_of(numel(x.shape()), t);
  const TensorId r = b.result(t, s, "_upsample_bilinear2d_aa");
  const GradEdge e = edge(x);
  const MemoryOp op{.read = data_bytes(x) + copy,
                    .written = size_of(numel(s), t) + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = copy > Bytes{} ? 2 : 1};
  Value out = emit1(b, "_upsample_bilinear2d_aa", op, r, {copy}, x);
  differentiable_resampling(out, "UpsampleBilinear2DAaBackward0", "_upsample_bilinear2d_aa_backward", e);
  return out;
}

/// torch.nn.functional.interpolate(x, size, mode="bicubic", antialias=True) (aten/src/ATen/native/cuda/UpSample.cuh):
/// the weights of a pixel's taps are computed by the threads that use them. Of channels-last data the kernel gets and
/// gives row-major copies.
inline Value upsample_bicubic2d_aa(Value x, std::int64_t rows, std::int64_t cols) {
  const AutocastCall call(CastPolicy::fp32, x);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const bool last = is_channels_last(x);
  const TensorId r = last ? b.result(t, s, channels_last_strides(s), "_upsample_bicubic2d_aa")
                          : b.result(t, s, "_upsample_bicubic2d_aa");
  const Bytes row_major_in = last ? data_bytes(x) : Bytes{}, row_major_out = last ? size_of(numel(s), t) : Bytes{};
  const MemoryOp op{.read = data_bytes(x),
                    .written = size_of(numel(s), t),
                    .workspace = row_major_in + row_major_out,
                    .dtype = t,
                    .kernels = last ? 3 : 1};
  const GradEdge e = edge(x);
  Value out = emit1(b, "_upsample_bicubic2d_aa", op, r, {row_major_in, row_major_out}, x);
  differentiable_resampling(out, "UpsampleBicubic2DAaBackward0", "_upsample_bicubic2d_aa_backward", e);
  return out;
}

/// The same without antialias (aten/src/ATen/native/cuda/UpSampleBicubic2d.cu).
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

/// torch.nn.functional.interpolate(x, size, mode="linear") of x[N, C, L], to its own length too: one kernel that reads
/// any strides; the result is row-major (aten/src/ATen/native/cuda/UpSampleLinear1d.cu).
inline Value upsample_linear1d(Value x, std::int64_t length) {
  const AutocastCall call(CastPolicy::fp32, x);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), length};
  const TensorId r = b.result(t, s, "upsample_linear1d");
  const GradEdge e = edge(x);
  Value out = emit1(b, "upsample_linear1d",
                    MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t}, r, {}, x);
  differentiable_resampling(out, "UpsampleLinear1DBackward0", "upsample_linear1d_backward", e);
  return out;
}

/// Which kernel samples, with what it takes beside operands and results.
struct GridSampler {
  const char* forward = "grid_sampler_2d";
  const char* backward = "grid_sampler_2d_backward";
  Bytes packed{};  ///< a row-major copy of the map
};

/// x[N, C, H, W] at at[N, R, S, 2]: one kernel that reads any strides; the result [N, C, R, S] is row-major. Each
/// thread has one position and goes through its channels, with 16 bicubic taps each (aten/src/ATen/native/cuda/
/// GridSampler.cu).
inline Value sample_grid(Value x, Value at, const GridSampler& how) {
  const AutocastCall call(CastPolicy::widest, x, at);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), at.size(1), at.size(2)};
  const int copies = how.packed > Bytes{} ? 1 : 0;
  const TensorId r = b.result(t, s, how.forward);
  const MemoryOp op{.read = data_bytes(x) + data_bytes(at) + how.packed,
                    .written = size_of(numel(s), t) + how.packed,
                    .workspace = how.packed,
                    .dtype = t,
                    .kernels = 1 + copies,
                    .access = Access::gather,
                    .dependent = checked_mul(x.size(1), 16)};
  const GradEdge e = edge(x);
  const Value sx = saved(x, static_cast<bool>(e)), sat = saved(at, static_cast<bool>(e));
  Value out = emit1(b, how.forward, op, r, {how.packed}, x, at);
  // grid_sampler_2d_backward_cuda: the grid's gradient is allocated, needed or not.
  differentiable(out, "GridSampler2DBackward0", {e}, [sx, sat, t, how, copies](Gradients& g) {
    Builder& to = sx.builder();
    const Bytes whole = data_bytes(sx), part = data_bytes(g.in[0]);
    const std::array<TensorId, 2> outs{to.result(t, sx.shape(), how.backward),
                                       to.result(sat.dtype(), sat.shape(), "grid gradient")};
    const std::array<TensorId, 3> ins{g.in[0].id(), sx.id(), sat.id()};
    to.emit(how.backward,
            MemoryOp{.read = part + whole + data_bytes(sat) + how.packed,
                     .written = whole + part + how.packed,
                     .workspace = how.packed,
                     .dtype = t,
                     .kernels = 2 + copies,
                     .access = Access::gather,
                     .dependent = checked_mul(sx.size(1), 16)},
            ins, outs, {how.packed});
    g.out[0] = Value(to, outs[0]);
    const Value grid(to, outs[1]);
  });
  return out;
}
/// torch.nn.functional.grid_sample.
inline Value grid_sampler_2d(Value x, Value at) { return sample_grid(std::move(x), std::move(at), {}); }

/// The same, bilinear with zeros around and aligned corners: cuDNN's up to 1024 channels, for which a map that is one
/// for several samples is written out (aten/src/ATen/native/GridSamplerUtils.h, cond_cudnn_grid_sampler;
/// cudnn/GridSampler.cpp, contiguousIfZeroInStrides).
inline Value aligned_grid_sample(Value x, Value at) {
  constexpr std::int64_t most_channels = 1024;
  if (x.size(1) > most_channels) return grid_sampler_2d(std::move(x), std::move(at));
  GridSampler how{.forward = "cudnn_grid_sampler", .backward = "cudnn_grid_sampler_backward"};
  for (int d = 0; d < x.shape().rank(); ++d)
    if (x.size(d) > 1 && x.tensor().strides[d] == 0) how.packed = size_of(numel(x.shape()), x.dtype());
  return sample_grid(std::move(x), std::move(at), how);
}

}  // namespace vlmest::eager
