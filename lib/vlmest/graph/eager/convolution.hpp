// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/product.hpp>
#include <vlmest/graph/eager/resample.hpp>

/// Convolutions inside a network: strides and padding, in either layout of the channels.
namespace vlmest::eager {

/// A 2-D convolution without a bias. Where the channels of x come last, so do the result's, and cuDNN gets the weight
/// in that layout, by a copy (aten/src/ATen/native/cudnn/ConvShared.cpp, cudnn_convolution_forward).
inline Value conv2d_padded(Value x, Value weight, std::int64_t stride, std::int64_t padding) {
  const AutocastCall call(CastPolicy::lower, x, weight);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const bool last = is_channels_last(x);
  const std::int64_t kh = weight.size(2), kw = weight.size(3);
  const auto side = [&](std::int64_t n, std::int64_t k) { return (n + 2 * padding - k) / stride + 1; };
  const Shape s{x.size(0), weight.size(0), side(x.size(2), kh), side(x.size(3), kw)};
  Convolution op{.batch = s[0],
                 .in_channels = x.size(1),
                 .out_channels = s[1],
                 .in_positions = checked_mul(x.size(2), x.size(3)),
                 .out_positions = checked_mul(s[2], s[3]),
                 .kernel = checked_mul(kh, kw),
                 .dtype = t};
  const Bytes copy = last && op.kernel > 1 ? data_bytes(weight) : Bytes{};
  const Bytes own = !last ? conv_scratch(op, x.size(2)) : op.kernel > 1 ? Bytes{} : channels_last_scratch(op, b.gpu);
  op.workspace = copy + own;
  op.kernels = 1 + (copy > Bytes{} ? 1 : 0) + (last ? (splits_result(op, b.gpu) ? 1 : 0) : own > Bytes{} ? 3 : 0);
  const TensorId r = last ? b.result(t, s, channels_last_strides(s), "convolution") : b.result(t, s, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight);
  const bool any = ex || ew;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {copy, own}, x, weight);
  differentiable(out, "ConvolutionBackward0", {ex, ew, GradEdge{}}, [op, sx, sw](Gradients& g) {
    const Bytes repacked = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
    convolution_backward(op, g, sx, sw, repacked);
  });
  return out;
}

}  // namespace vlmest::eager
