// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include <vlmest/graph/eager/complex.hpp>
#include <vlmest/graph/eager/data.hpp>
#include <vlmest/op/fft_footprint.hpp>

/// Real transforms, torch.fft.rfft, rfft2, irfft and irfft2 (torch 2.11, ATen/native/cuda/SpectralOps.cpp), and their
/// gradients (torch/csrc/autograd/FunctionsManual.cpp).
namespace vlmest::eager {

/// Which side divides by the number of points: the inverse one, both by its root, the forward one.
enum class FftNorm : std::uint8_t { backward, ortho, forward };

/// The axes of a transform in the caller's order; the last one is halved.
struct FftAxes {
  std::array<int, 3> dims{};
  int count = 0;
};

/// Strides of a fresh result: its batch axes come first, in the order of the working tensor's strides, then the
/// transformed axes (_exec_fft).
inline Shape fft_strides(const Shape& shape, const Shape& working, const FftAxes& axes) {
  std::array<int, Shape::max_rank> order{};
  int n = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool transformed =
        std::find(axes.dims.begin(), axes.dims.begin() + axes.count, d) != axes.dims.begin() + axes.count;
    if (!transformed) order[static_cast<std::size_t>(n++)] = d;
  }
  std::stable_sort(order.begin(), order.begin() + n, [&](int a, int b) { return working[a] > working[b]; });
  for (int k = 0; k < axes.count; ++k) order[static_cast<std::size_t>(n++)] = axes.dims[static_cast<std::size_t>(k)];
  Shape r = shape;
  std::int64_t step = 1;
  while (n > 0) {
    const int d = order[static_cast<std::size_t>(--n)];
    r[d] = step;
    step = checked_mul(step, shape[d]);
  }
  return r;
}

/// One transform, without its derivative: `last` is the size of the halved axis on the real side, of a complex
/// transform the size of its last axis. A complex transform takes its axes in the order of their strides
/// (_sort_dims).
inline Value transform(const char* name, Value x, Fft::Kind kind, FftAxes axes, std::int64_t last, bool scaled,
                       bool inverse) {
  Builder& b = x.builder();
  const Shape in = x.shape();
  for (int k = 0; k < axes.count; ++k) {
    int& d = axes.dims[static_cast<std::size_t>(k)];
    d = wrap(d, in.rank());
  }
  const Shape strides = x.tensor().strides;
  if (kind == Fft::Kind::c2c)
    std::stable_sort(axes.dims.begin(), axes.dims.begin() + axes.count,
                     [&](int p, int q) { return strides[p] > strides[q]; });
  const int halved = kind == Fft::Kind::c2c ? -1 : axes.dims[static_cast<std::size_t>(axes.count - 1)];
  const DType t = x.dtype();
  Fft f{.kind = kind, .rank = axes.count, .inverse = inverse, .scaled = scaled};
  f.dtype = t == DType::complex64    ? DType::fp32
            : t == DType::complex128 ? DType::fp64
            : t == DType::complex32  ? DType::fp16
                                     : t;
  std::int64_t transformed = 1;
  for (int k = 0; k < axes.count; ++k) {
    const int d = axes.dims[static_cast<std::size_t>(k)];
    f.n[static_cast<std::size_t>(k)] = d == halved ? last : in[d];
    transformed = checked_mul(transformed, in[d]);
  }
  f.batch = numel(in).value() / transformed;
  const FftLayout layout = layout_of(f, in, strides, axes.dims);
  f.copied = !layout.collapses || !layout.embeds;
  f.strided = !f.copied && !layout.contiguous;
  const FftFootprint bytes = footprint(f, layout);
  Shape out = in;
  if (halved >= 0) out[halved] = kind == Fft::Kind::r2c ? half_spectrum(last) : last;
  const Shape working = kind == Fft::Kind::c2r ? contiguous_strides(in) : strides;
  const DType result = kind == Fft::Kind::c2r ? f.dtype : complex_of(f.dtype);
  const TensorId r = b.result(result, out, fft_strides(out, working, axes), name);
  return emit1(b, name, f, r, {bytes.clone, bytes.contiguous_copy, bytes.workspace.bytes}, x);
}

/// FunctionsManual.cpp, fft_r2c_backward: the half spectrum is filled up with zeros and transformed back as a complex
/// one, of which the real part is a view.
inline Value fft_r2c_backward(Value gradient, const FftAxes& axes, std::int64_t last, bool scaled) {
  Builder& b = gradient.builder();
  const int d = wrap(axes.dims[static_cast<std::size_t>(axes.count - 1)], gradient.shape().rank());
  const std::int64_t half = gradient.size(d);
  Value full = std::move(gradient);
  if (half < last) {
    Shape s = full.shape();
    s[d] = last;
    Value zeros = fill(b, "new_zeros", s, full.dtype());
    copy_(slice(zeros, d, 0, half), full);
    full = std::move(zeros);
  }
  return real_part(transform("_fft_c2c", std::move(full), Fft::Kind::c2c, axes, last, scaled, true));
}
/// fft_c2r_backward: a real transform, whose frequencies that stand for two are doubled in place.
inline Value fft_c2r_backward(Value gradient, const FftAxes& axes, std::int64_t last, bool scaled) {
  const int d = wrap(axes.dims[static_cast<std::size_t>(axes.count - 1)], gradient.shape().rank());
  Value half = transform("_fft_r2c", std::move(gradient), Fft::Kind::r2c, axes, last, scaled, false);
  const std::int64_t twice = last - half.size(d);
  if (twice > 0) pointwise_("mul_.Tensor", slice(half, d, 1, 1 + twice));
  return half;
}

/// torch.fft.rfftn(x, dim=axes, norm=norm): real to half spectrum.
inline Value rfft(Value x, const FftAxes& axes, FftNorm norm = FftNorm::backward) {
  const std::int64_t last = x.size(wrap(axes.dims[static_cast<std::size_t>(axes.count - 1)], x.shape().rank()));
  const bool scaled = norm != FftNorm::backward;
  const GradEdge e = edge(x);
  Value r = transform("_fft_r2c", std::move(x), Fft::Kind::r2c, axes, last, scaled, false);
  differentiable(r, "FftR2CBackward0", {e},
                 [axes, last, scaled](Gradients& g) { g.out[0] = fft_r2c_backward(g.in[0], axes, last, scaled); });
  return r;
}
/// torch.fft.irfftn(x, s, dim=axes, norm=norm) of a spectrum that already has the sizes of s: half spectrum to real,
/// `last` points on the halved axis.
inline Value irfft(Value x, std::int64_t last, const FftAxes& axes, FftNorm norm = FftNorm::backward) {
  const std::int64_t have = x.size(wrap(axes.dims[static_cast<std::size_t>(axes.count - 1)], x.shape().rank()));
  if (last < 1 || half_spectrum(last) != have)
    throw Error("graph", "an inverse transform to " + std::to_string(last) + " points from " + std::to_string(have) +
                             " frequencies");
  const bool scaled = norm != FftNorm::forward;
  const GradEdge e = edge(x);
  Value r = transform("_fft_c2r", std::move(x), Fft::Kind::c2r, axes, last, scaled, true);
  differentiable(r, "FftC2RBackward0", {e},
                 [axes, last, scaled](Gradients& g) { g.out[0] = fft_c2r_backward(g.in[0], axes, last, scaled); });
  return r;
}

}  // namespace vlmest::eager
