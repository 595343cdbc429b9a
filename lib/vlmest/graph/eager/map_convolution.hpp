// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <vlmest/graph/eager/convolution.hpp>
#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/graph/eager/product.hpp>
#include <vlmest/library/convolution.hpp>

/// Convolutions over feature maps, whose results have the layout of their argument: row-major, or with the channels
/// next to each other (aten/src/ATen/native/Convolution.cpp, cudnn_conv_suggest_memory_format).
namespace vlmest::eager {

/// Stride and zeros at each border, and whether each channel has a filter of its own.
struct ConvShape {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool depthwise = false;
};

/// What cuDNN is given copies of: an argument that is not dense in its layout and, with the channels next to each
/// other, a weight of several channels, which is row-major (aten/src/ATen/native/cudnn/ConvShared.cpp,
/// cudnn_convolution_forward).
struct ConvCopies {
  Bytes argument, weight, own;
};
inline ConvCopies conv_copies(const Convolution& op, const Value& x, const Value& weight) {
  ConvCopies r;
  r.argument = pool_copy(x);
  if (is_channels_last(x)) {
    if (weight.size(1) > 1 && op.kernel > 1) r.weight = data_bytes(weight);
  } else {
    r.own = overlapping_conv_scratch(op);
  }
  return r;
}

/// Scratch of the gradients beside what they are, in the order in which they are made: the weight's needs a dense
/// argument, the bias's is a sum over pictures and places (aten/src/ATen/native/Convolution.cpp, convolution_backward).
inline Bytes map_gradient_scratch(const Gradients& g, const Value& x, std::int64_t channels) {
  const Value& y = g.in[0];
  const Bytes bias = g.wants(2) ? size_of(Elements(channels), y.dtype()) : Bytes{};
  const Bytes copy = g.wants(1) ? pool_copy(x) : Bytes{};
  Bytes most = copy > bias ? copy - bias : Bytes{};
  if (g.wants(2)) most = std::max(most, bias_gradient_scratch(y));
  return most;
}

/// torch.nn.functional.conv2d of x[N, C, H, W] with weight[O, C or 1, k, k] and bias[O].
inline Value conv2d(Value x, Value weight, Value bias, const ConvShape& shape) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const auto side = [&](std::int64_t n, std::int64_t taps) {
    return (checked_add(n, 2 * shape.padding) - taps) / shape.stride + 1;
  };
  const Shape s{x.size(0), weight.size(0), side(x.size(2), weight.size(2)), side(x.size(3), weight.size(3))};
  const TensorId r = pooled_result(x, t, s, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Convolution whole{.batch = s[0],
                    .in_channels = x.size(1),
                    .out_channels = s[1],
                    .in_positions = checked_mul(x.size(2), x.size(3)),
                    .out_positions = checked_mul(s[2], s[3]),
                    .kernel = checked_mul(weight.size(2), weight.size(3)),
                    .dtype = t,
                    .bias = static_cast<bool>(bias)};
  const ConvCopies copies = conv_copies(whole, x, weight);
  whole.workspace = copies.argument + copies.weight + copies.own;
  whole.kernels = 1 + (bias ? 1 : 0) + (copies.argument > Bytes{} ? 1 : 0) + (copies.weight > Bytes{} ? 1 : 0) +
                  (copies.own > Bytes{} ? 3 : 0);
  const DepthwiseConvolution each{.batch = s[0],
                                  .channels = s[1],
                                  .in_positions = whole.in_positions,
                                  .out_positions = whole.out_positions,
                                  .taps = whole.kernel,
                                  .dtype = t};
  const Op op = shape.depthwise ? Op(each) : Op(whole);
  Value out = emit1(b, "convolution", op, r, {copies.argument, copies.weight, copies.own}, x, weight, bias);
  differentiable(
      out, "ConvolutionBackward0", {ex, ew, eb}, [whole, each, sx, sw, depthwise = shape.depthwise](Gradients& g) {
        const Bytes scratch = map_gradient_scratch(g, sx, whole.out_channels);
        std::vector<TensorId> outs;
        Builder& at = sx.builder();
        const DType u = sx.dtype();
        const Shape like = is_channels_last(sx) ? channels_last_strides(sw.shape()) : contiguous_strides(sw.shape());
        if (g.wants(0)) outs.push_back(pooled_result(sx, u, sx.shape(), "input gradient"));
        if (g.wants(1)) outs.push_back(at.result(u, sw.shape(), like, "weight gradient"));
        if (g.wants(2)) outs.push_back(at.result(u, Shape{whole.out_channels}, "bias gradient"));
        const std::array<TensorId, 3> ins{g.in[0].id(), sx.id(), sw.id()};
        DepthwiseConvolution of_each = each;
        of_each.bias_gradient = g.wants(2);
        Convolution of_all = whole;
        of_all.products = (g.wants(0) ? 1 : 0) + (g.wants(1) ? 1 : 0);
        of_all.workspace = scratch;
        at.emit("convolution_backward", depthwise ? Op(of_each) : Op(of_all), ins, outs, {scratch});
        std::size_t next = 0;
        for (std::size_t i = 0; i < 3; ++i)
          if (g.wants(i)) g.out[i] = Value(at, outs[next++]);
      });
  return out;
}

}  // namespace vlmest::eager
