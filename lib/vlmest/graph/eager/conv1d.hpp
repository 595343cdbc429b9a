// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/product.hpp>

/// Convolution and pooling over one dimension.
namespace vlmest::eager {

/// torch.nn.functional.conv1d of x[N, C, L] with weight[O, C, taps]: cuDNN runs it over rows of height one.
inline Value conv1d(Value x, Value weight, Value bias, std::int64_t stride, std::int64_t padding) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t batch = x.size(0), out = weight.size(0), taps = weight.size(2),
                     length = (checked_add(x.size(2), checked_mul(padding, 2)) - taps) / stride + 1;
  const Convolution op{.batch = batch,
                       .in_channels = x.size(1),
                       .out_channels = out,
                       .in_positions = x.size(2),
                       .out_positions = length,
                       .kernel = taps,
                       .dtype = t,
                       .bias = static_cast<bool>(bias),
                       .kernels = bias ? 2 : 1};
  const TensorId r = b.result(t, Shape{batch, out, length}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value y = emit1(b, "convolution", op, r, {op.workspace}, x, weight, bias);
  differentiable(y, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw](Gradients& g) {
    const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
    convolution_backward(op, g, sx, sw, copy);
  });
  return y;
}

/// torch.nn.functional.conv2d of x[N, C, H, W] with padding, as encoders of sound shorten their frames with it.
inline Value strided_conv2d(Value x, Value weight, Value bias, std::int64_t stride, std::int64_t padding) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const auto length = [&](int dim) {
    return (checked_add(x.size(dim), checked_mul(padding, 2)) - weight.size(dim)) / stride + 1;
  };
  const Shape s{x.size(0), weight.size(0), length(2), length(3)};
  const Convolution op{.batch = x.size(0),
                       .in_channels = x.size(1),
                       .out_channels = weight.size(0),
                       .in_positions = checked_mul(x.size(2), x.size(3)),
                       .out_positions = checked_mul(s[2], s[3]),
                       .kernel = checked_mul(weight.size(2), weight.size(3)),
                       .dtype = t,
                       .bias = static_cast<bool>(bias),
                       .kernels = bias ? 2 : 1};
  const TensorId r = b.result(t, s, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value y = emit1(b, "convolution", op, r, {op.workspace}, x, weight, bias);
  differentiable(y, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw](Gradients& g) {
    const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
    convolution_backward(op, g, sx, sw, copy);
  });
  return y;
}

/// torch.nn.AvgPool1d of x[N, C, L] with a stride of its kernel's size: avg_pool2d over rows of height one
/// (aten/src/ATen/native/Pooling.cpp, avg_pool1d), whose result has the layout of its input.
inline Value avg_pool1d(Value x, std::int64_t kernel) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), x.size(2) / kernel};
  const GradEdge e = edge(x);
  const Value kept = saved(x, static_cast<bool>(e));
  const TensorId r = b.result(t, s, strides_like(x.tensor(), s), "avg_pool2d");
  Value y =
      emit1(b, "avg_pool2d", MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t}, r, {}, x);
  differentiable(y, "AvgPool2DBackward0", {e}, [kept](Gradients& g) {
    const Value& from = g.in[0];
    Builder& at = from.builder();
    const DType u = from.dtype();
    const Shape strides = strides_like(kept.tensor(), kept.shape());
    const bool alike = strides_like(from.tensor(), from.shape()) == from.tensor().strides &&
                       is_contiguous(from) == is_contiguous(kept);
    const Bytes copy = alike ? Bytes{} : data_bytes(from), whole = data_bytes(kept);
    const TensorId into = at.result(u, kept.shape(), strides, "avg_pool2d_backward");
    const MemoryOp op{.read = data_bytes(from) + copy,
                      .written = whole + copy,
                      .workspace = copy,
                      .dtype = u,
                      .kernels = copy > Bytes{} ? 2 : 1};
    g.out[0] = emit1(at, "avg_pool2d_backward", op, into, {copy}, g.in[0]);
  });
  return y;
}

}  // namespace vlmest::eager
