// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/graph/eager/product.hpp>

/// Convolutions over feature maps, whose results have the layout of their argument: row-major, or with the channels
/// next to each other (aten/src/ATen/native/Convolution.cpp, cudnn_conv_suggest_memory_format).
namespace vlmest::eager {

/// Stride and zeros at each border, and whether each channel has a filter of its own.
struct ConvShape {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool depthwise = false;
};

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
  const std::int64_t taps = checked_mul(weight.size(2), weight.size(3));
  Op op;
  if (shape.depthwise) {
    op = DepthwiseConvolution{.batch = s[0],
                              .channels = s[1],
                              .in_positions = checked_mul(x.size(2), x.size(3)),
                              .out_positions = checked_mul(s[2], s[3]),
                              .taps = taps,
                              .dtype = t};
  } else {
    op = Convolution{.batch = s[0],
                     .in_channels = x.size(1),
                     .out_channels = s[1],
                     .in_positions = checked_mul(x.size(2), x.size(3)),
                     .out_positions = checked_mul(s[2], s[3]),
                     .kernel = taps,
                     .dtype = t,
                     .bias = static_cast<bool>(bias),
                     .kernels = bias ? 2 : 1};
  }
  Value out = emit1(b, "convolution", op, r, {}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw, channels = s[1]](Gradients& g) {
    Builder& at = sx.builder();
    const DType u = sx.dtype();
    std::vector<TensorId> outs;
    if (g.wants(0)) outs.push_back(pooled_result(sx, u, sx.shape(), "input gradient"));
    if (g.wants(1)) outs.push_back(at.result(u, sw.shape(), "weight gradient"));
    if (g.wants(2)) outs.push_back(at.result(u, Shape{channels}, "bias gradient"));
    const std::array<TensorId, 3> ins{g.in[0].id(), sx.id(), sw.id()};
    at.emit("convolution_backward", op, ins, outs);
    std::size_t next = 0;
    for (std::size_t i = 0; i < 3; ++i)
      if (g.wants(i)) g.out[i] = Value(at, outs[next++]);
  });
  return out;
}

}  // namespace vlmest::eager
