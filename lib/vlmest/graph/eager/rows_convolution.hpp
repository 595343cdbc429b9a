// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/graph/eager/convolution.hpp>
#include <vlmest/graph/eager/product.hpp>
#include <vlmest/op/depthwise_conv.hpp>

/// Convolutions of row-major maps x[N, C, H, W] whose results are row-major too: by filters of one place, by filters
/// that overlap, and of each channel by itself.
namespace vlmest::eager {

struct MapSteps {
  std::int64_t rows = 1, cols = 1;
};

/// What cuDNN takes for one: its tensor cores' layout of maps of several channels where filters overlap, with a counter
/// for large ones, counters alone for filters of one place (library/convolution.hpp).
inline Bytes rows_conv_scratch(const Convolution& op, const Gpu& gpu) {
  if (op.kernel == 1) return pointwise_scratch(op, gpu);
  if (op.in_channels < 4) return Bytes{};
  const std::int64_t results = checked_mul(checked_mul(op.batch, op.out_channels), op.out_positions);
  return strided_conv_scratch(op, false) + (results >= large_convolution ? Bytes(4 + 127) : Bytes{});
}

/// What cuDNN takes for the gradients of one (library/convolution.hpp): of filters that overlap copies in its own
/// layout, but for pictures in fp32; of filters of one place for the weight's alone, nothing for maps of one place,
/// which are a plain product.
inline Bytes rows_conv_gradient_scratch(const Convolution& op, bool of_weight, const Gpu& gpu) {
  if (op.kernel > 1) return is_half(op.dtype) || op.in_channels > 3 ? strided_conv_gradient_scratch(op) : Bytes{};
  return of_weight && op.out_positions > 1 ? rows_pointwise_gradient_scratch(op, gpu) : Bytes{};
}

/// The gradients of a convolution of each channel by itself: a kernel for each, the bias's a sum behind them. What is
/// not row-major is copied first.
inline void depthwise_gradients(DepthwiseConvolution op, Gradients& g, const Value& x, const Value& weight) {
  Builder& b = x.builder();
  std::vector<TensorId> outs;
  op.forward = false;
  op.input_gradient = g.wants(0);
  op.weight_gradient = g.wants(1);
  op.bias_gradient = g.wants(2);
  if (g.wants(0)) outs.push_back(b.result(op.dtype, x.shape(), "input gradient"));
  if (g.wants(1)) outs.push_back(b.result(op.dtype, weight.shape(), "weight gradient"));
  if (g.wants(2)) outs.push_back(b.result(op.dtype, Shape{weight.size(0)}, "bias gradient"));
  const std::array<TensorId, 3> ins{g.in[0].id(), x.id(), weight.id()};
  const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
  op.workspace = copy;
  op.copies = copy > Bytes{} ? 1 : 0;
  Bytes most = copy;  // the bias's gradient is not there yet
  if (g.wants(2)) {
    const Bytes bias = size_of(Elements(weight.size(0)), op.dtype);
    most = std::max(copy > bias ? copy - bias : Bytes{}, bias_gradient_scratch(g.in[0]));
  }
  b.emit("convolution_backward", op, ins, outs, {most});
  std::size_t next = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if (g.wants(i)) g.out[i] = Value(b, outs[next++]);
}

/// torch.nn.functional.conv2d of x[N, C, H, W] with weight[O, C or 1, h, w] and a bias[O] that may be empty; `padding`
/// zeros at each border. One of each channel (weight[C, 1, h, w], or several filters for each) has as many groups as
/// channels.
inline Value rows_conv2d(Value x, Value weight, Value bias, MapSteps stride, std::int64_t padding = 0) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const bool depthwise = weight.size(1) == 1 && weight.size(0) % x.size(1) == 0 && x.size(1) > 1;
  const auto side = [&](int dim, std::int64_t step) {
    return (checked_add(x.size(dim), 2 * padding) - weight.size(dim)) / step + 1;
  };
  const Shape s{x.size(0), weight.size(0), side(2, stride.rows), side(3, stride.cols)};
  Convolution op{.batch = s[0],
                 .in_channels = x.size(1),
                 .out_channels = s[1],
                 .in_positions = checked_mul(x.size(2), x.size(3)),
                 .out_positions = checked_mul(s[2], s[3]),
                 .kernel = checked_mul(weight.size(2), weight.size(3)),
                 .dtype = t,
                 .bias = static_cast<bool>(bias)};
  const TensorId r = b.result(t, s, "convolution");
  if (!depthwise) {
    op.workspace = rows_conv_scratch(op, b.gpu);
    op.kernels = 1 + (bias ? 1 : 0) + (op.kernel > 1 && op.workspace > Bytes{} ? 3 : 0);
    return emit_convolution(op, r, {op.workspace}, x, weight, bias,
                            [op, gpu = b.gpu](const Gradients& g, const Value&) {
                              const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
                              return copy + rows_conv_gradient_scratch(op, g.wants(1), gpu);
                            });
  }
  const DepthwiseConvolution each{.batch = s[0],
                                  .channels = x.size(1),
                                  .multiplier = s[1] / x.size(1),
                                  .in_positions = op.in_positions,
                                  .out_positions = op.out_positions,
                                  .taps = op.kernel,
                                  .dtype = t};
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", each, r, {}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb},
                 [each, sx, sw](Gradients& g) { depthwise_gradients(each, g, sx, sw); });
  return out;
}

}  // namespace vlmest::eager
