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
  const bool pointwise = op.kernel == 1;
  const Bytes copy = last && !pointwise ? data_bytes(weight) : Bytes{};
  const Bytes own = last ? (pointwise ? channels_last_scratch(op, b.gpu) : padded_channels_scratch(op))
                         : (pointwise ? pointwise_scratch(op, b.gpu) : conv_scratch(op, x.size(2)));
  const bool converts = !pointwise && own > Bytes{};
  op.workspace = copy + own;
  op.kernels = 1 + (copy > Bytes{} ? 1 : 0) + (last && pointwise && splits_result(op, b.gpu) ? 1 : 0) +
               (converts ? (last ? 2 : 3) : 0);
  const TensorId r = last ? b.result(t, s, channels_last_strides(s), "convolution") : b.result(t, s, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight);
  const bool any = ex || ew;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {copy, own}, x, weight);
  // A gradient in another layout is copied first, and the weight again; its copy is gone before its gradient is made.
  differentiable(out, "ConvolutionBackward0", {ex, ew, GradEdge{}}, [op, sx, sw, last, pointwise, copy](Gradients& g) {
    const bool lies_so = last ? is_channels_last(g.in[0]) : is_contiguous(g.in[0]);
    const Bytes repacked = lies_so ? Bytes{} : data_bytes(g.in[0]);
    const Bytes weight_copy = g.wants(1) ? Bytes{} : copy;
    const Bytes sums = last ? padded_channels_scratch(op) : pointwise ? pointwise_gradient_scratch(op) : Bytes{};
    convolution_backward(op, g, sx, sw, repacked + weight_copy + (g.wants(1) || last ? sums : Bytes{}));
  });
  return out;
}

}  // namespace vlmest::eager
