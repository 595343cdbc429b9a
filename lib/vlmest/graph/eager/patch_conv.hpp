// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/graph/eager/autocast.hpp>
#include <vlmest/graph/eager/gradient.hpp>
#include <vlmest/library/convolution.hpp>

/// Convolutions whose kernel covers their whole input, by which towers over packed patches embed them.
namespace vlmest::eager {

/// A 3-D convolution whose kernel covers its whole input: x[N, C, T, H, W] with weight[O, C, T, H, W] to
/// [N, O, 1, 1, 1]. The Qwen line's patch embedding. cuDNN needs no scratch for it (recorded peaks).
inline Value patch_conv3d(Value x, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t n = x.size(0), taps = checked_mul(checked_mul(weight.size(2), weight.size(3)), weight.size(4));
  const Convolution op{.batch = n,
                       .in_channels = x.size(1),
                       .out_channels = weight.size(0),
                       .in_positions = taps,
                       .out_positions = 1,
                       .kernel = taps,
                       .dtype = t,
                       .bias = static_cast<bool>(bias),
                       .kernels = bias ? 2 : 1};
  const TensorId r = b.result(t, Shape{n, op.out_channels, 1, 1, 1}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb},
                 [op, sx, sw](Gradients& g) { convolution_backward(op, g, sx, sw, patch_gradient_scratch(op)); });
  return out;
}

/// The same in two dimensions: x[N, C, S, S] with weight[O, C, S, S] to [N, O, 1, 1]. MoonViT's patch embedding. The
/// bias's gradient is summed up when that of the weight is there, through scratch of its own.
inline Value patch_conv2d(Value x, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t n = x.size(0), taps = checked_mul(weight.size(2), weight.size(3));
  Convolution op{.batch = n,
                 .in_channels = x.size(1),
                 .out_channels = weight.size(0),
                 .in_positions = taps,
                 .out_positions = 1,
                 .kernel = taps,
                 .dtype = t,
                 .bias = static_cast<bool>(bias)};
  op.workspace = patch_scratch(op);
  op.kernels = (op.workspace > Bytes{} ? 3 : 1) + (bias ? 1 : 0);
  const TensorId r = b.result(t, Shape{n, op.out_channels, 1, 1}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {op.workspace}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw](Gradients& g) {
    const ReductionScratch sum =
        reduction_scratch(g.in[0].tensor(), 0, is_half(op.dtype) ? 4 : bits(op.dtype) / 8, sx.builder().gpu);
    const Bytes own = size_of(Elements(op.out_channels), op.dtype);
    convolution_backward(op, g, sx, sw, std::max(conv_weight_gradient_scratch(op), own + sum.partial + sum.semaphores));
  });
  return out;
}

}  // namespace vlmest::eager
