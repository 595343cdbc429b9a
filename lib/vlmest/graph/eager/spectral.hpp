// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/graph/eager/emit.hpp>
#include <vlmest/graph/eager/view.hpp>
#include <vlmest/op/fft_footprint.hpp>

/// Real transforms, torch.fft.rfft, rfft2, irfft and irfft2 (torch 2.11, ATen/native/cuda/SpectralOps.cpp).
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

/// One transform: `last` is the size of the halved axis on the real side.
inline Value real_transform(const char* name, Value x, Fft::Kind kind, FftAxes axes, std::int64_t last, bool scaled) {
  Builder& b = x.builder();
  const Shape& in = x.shape();
  for (int k = 0; k < axes.count; ++k) {
    int& d = axes.dims[static_cast<std::size_t>(k)];
    d = wrap(d, in.rank());
  }
  const int halved = axes.dims[static_cast<std::size_t>(axes.count - 1)];
  const DType t = x.dtype();
  Fft f{.kind = kind, .rank = axes.count, .inverse = kind == Fft::Kind::c2r, .scaled = scaled};
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
  const FftLayout layout = layout_of(f, in, x.tensor().strides, axes.dims);
  f.copied = !layout.collapses || !layout.embeds;
  f.strided = !f.copied && !layout.contiguous;
  const FftFootprint bytes = footprint(f, layout);
  Shape out = in;
  out[halved] = kind == Fft::Kind::r2c ? half_spectrum(last) : last;
  const Shape working = kind == Fft::Kind::c2r ? contiguous_strides(in) : x.tensor().strides;
  const DType result = kind == Fft::Kind::r2c ? complex_of(f.dtype) : f.dtype;
  const TensorId r = b.result(result, out, fft_strides(out, working, axes), name);
  return emit1(b, name, f, r, {bytes.clone, bytes.contiguous_copy, bytes.workspace.bytes}, x);
}

/// torch.fft.rfftn(x, dim=axes, norm=norm): real to half spectrum.
inline Value rfft(Value x, const FftAxes& axes, FftNorm norm = FftNorm::backward) {
  const std::int64_t last = x.size(wrap(axes.dims[static_cast<std::size_t>(axes.count - 1)], x.shape().rank()));
  return real_transform("_fft_r2c", std::move(x), Fft::Kind::r2c, axes, last, norm != FftNorm::backward);
}
/// torch.fft.irfftn(x, s, dim=axes, norm=norm) of a spectrum that already has the sizes of s: half spectrum to real,
/// `last` points on the halved axis.
inline Value irfft(Value x, std::int64_t last, const FftAxes& axes, FftNorm norm = FftNorm::backward) {
  const std::int64_t have = x.size(wrap(axes.dims[static_cast<std::size_t>(axes.count - 1)], x.shape().rank()));
  if (last < 1 || half_spectrum(last) != have)
    throw Error("graph", "an inverse transform to " + std::to_string(last) + " points from " + std::to_string(have) +
                             " frequencies");
  return real_transform("_fft_c2r", std::move(x), Fft::Kind::c2r, axes, last, norm != FftNorm::forward);
}

/// torch.view_as_complex: pairs of the last dimension become complex numbers; a view.
inline Value view_as_complex(Value x) {
  Shape s = x.shape(), t = x.tensor().strides;
  if (s[-1] != 2 || t[-1] != 1) throw Error("graph", "view_as_complex of " + to_string(s));
  s.erase(s.rank() - 1);
  t.erase(t.rank() - 1);
  for (int i = 0; i < t.rank(); ++i) t[i] /= 2;
  Value r = x.builder().view(x, s, t, complex_of(x.dtype()));
  x.reset();
  return r;
}

}  // namespace vlmest::eager
