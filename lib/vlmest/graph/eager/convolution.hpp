// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/data.hpp>
#include <vlmest/library/convolution.hpp>

/// Convolutions of pictures into patches.
namespace vlmest::eager {

void convolution_backward(const Convolution& op, Gradients& g, const Value& x, const Value& weight,
                          Bytes scratch);  // gradient.hpp

/// A 2-D convolution of NCHW data. Where cuDNN converts to its own layout (library/convolution.hpp, conv_scratch),
/// input, weight and result take a kernel each.
inline Value conv2d(Value x, Value weight, Value bias, std::int64_t stride) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t batch = x.size(0), ci = x.size(1), co = weight.size(0), kh = weight.size(2), kw = weight.size(3);
  const std::int64_t oh = (x.size(2) - kh) / stride + 1, ow = (x.size(3) - kw) / stride + 1;
  Convolution op{.batch = batch,
                 .in_channels = ci,
                 .out_channels = co,
                 .in_positions = checked_mul(x.size(2), x.size(3)),
                 .out_positions = checked_mul(oh, ow),
                 .kernel = checked_mul(kh, kw),
                 .dtype = t,
                 .bias = static_cast<bool>(bias)};
  const TensorId r = b.result(t, Shape{batch, co, oh, ow}, "convolution");
  op.workspace = conv_scratch(op, x.size(2));
  op.kernels = (op.workspace > Bytes{} ? 4 : 1) + (bias ? 1 : 0);
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {op.workspace}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw](Gradients& g) {
    // A gradient that is not row-major is copied first (aten/src/ATen/native/Convolution.cpp).
    const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
    convolution_backward(op, g, sx, sw, copy + conv_weight_gradient_scratch(op));
  });
  return out;
}

/// A 2-D convolution of squares of their own, x[N, C, S, S] with channels last, by a kernel of that size: cuDNN gets
/// the weight in the same layout, by a copy (aten/src/ATen/native/cudnn/ConvShared.cpp, cudnn_convolution_forward); the
/// result keeps it.
inline Value conv2d_channels_last(Value x, Value weight, Value bias) {
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
  const Bytes copy = taps > 1 ? data_bytes(weight) : Bytes{}, own = channels_last_scratch(op, b.gpu);
  op.workspace = copy + own;
  op.kernels = 1 + (bias ? 1 : 0) + (copy > Bytes{} ? 1 : 0) + (splits_result(op, b.gpu) ? 1 : 0);
  const TensorId r = b.result(t, Shape{n, op.out_channels, 1, 1}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {copy, own}, x, weight, bias);
  // A copy of the result's gradient and a counter with its alignment (recorded with 256 and 768 rows).
  const Bytes scratch = size_of(Elements(checked_mul(n, op.out_channels)), t) + Bytes(4 + 127);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb},
                 [op, sx, sw, scratch](Gradients& g) { convolution_backward(op, g, sx, sw, scratch); });
  return out;
}

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

}  // namespace vlmest::eager
