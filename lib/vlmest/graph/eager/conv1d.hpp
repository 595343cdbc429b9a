// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/gradient.hpp>
#include <vlmest/graph/eager/product.hpp>
#include <vlmest/library/convolution.hpp>

/// Convolution and pooling over one dimension.
namespace vlmest::eager {

/// A convolution of x by a weight of taps that overlap, or of one, into a result of shape `s`. An input that is not
/// row-major is copied first, and so is its gradient (aten/src/ATen/native/Convolution.cpp).
inline Value strided_convolution(Value x, Value weight, Value bias, const Shape& s, Convolution op) {
  Builder& b = x.builder();
  const bool single = op.kernel == 1;
  const Bytes copy = is_contiguous(x) ? Bytes{} : data_bytes(x),
              own = single ? pointwise_scratch(op, b.gpu) : strided_conv_scratch(op);
  op.workspace = copy + own;
  op.kernels = (own > Bytes{} && !single ? 4 : 1) + (bias ? 1 : 0) + (copy > Bytes{} ? 1 : 0);
  const TensorId r = b.result(op.dtype, s, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value y = emit1(b, "convolution", op, r, {op.workspace}, x, weight, bias);
  differentiable(y, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw, single](Gradients& g) {
    const Bytes gradient = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]),
                input = is_contiguous(sx) ? Bytes{} : data_bytes(sx);
    const Value rows = sx.builder().view(sx, sx.shape(), contiguous_strides(sx.shape()));
    const Bytes sums = !single      ? strided_conv_gradient_scratch(op)
                       : g.wants(1) ? pointwise_gradient_scratch(op)
                                    : Bytes{};
    convolution_backward(op, g, rows, sw, gradient + input + sums);
  });
  return y;
}

/// torch.nn.functional.conv1d of x[N, C, L] with weight[O, C, taps]: cuDNN runs it over rows of height one.
inline Value conv1d(Value x, Value weight, Value bias, std::int64_t stride, std::int64_t padding) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  const std::int64_t taps = weight.size(2),
                     length = (checked_add(x.size(2), checked_mul(padding, 2)) - taps) / stride + 1;
  const Convolution op{.batch = x.size(0),
                       .in_channels = x.size(1),
                       .out_channels = weight.size(0),
                       .in_positions = x.size(2),
                       .out_positions = length,
                       .kernel = taps,
                       .dtype = x.dtype(),
                       .bias = static_cast<bool>(bias)};
  const Shape s{op.batch, op.out_channels, length};
  return strided_convolution(std::move(x), std::move(weight), std::move(bias), s, op);
}

/// torch.nn.functional.conv2d of x[N, C, H, W] with padding, as encoders of sound shorten their frames with it.
inline Value strided_conv2d(Value x, Value weight, Value bias, std::int64_t stride, std::int64_t padding) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
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
                       .dtype = x.dtype(),
                       .bias = static_cast<bool>(bias)};
  return strided_convolution(std::move(x), std::move(weight), std::move(bias), s, op);
}

/// torch.nn.AvgPool1d of x[N, C, L] with a stride of its kernel's size: avg_pool2d over rows of height one
/// (aten/src/ATen/native/Pooling.cpp, avg_pool1d), whose result has the layout of its input; its gradient is row-major
/// (recorded), which the result's is copied for.
inline Value avg_pool1d(Value x, std::int64_t kernel) {
  x = unsqueeze(std::move(x), 2);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), 1, x.size(3) / kernel};
  const GradEdge e = edge(x);
  const Value kept = saved(x, static_cast<bool>(e));
  const TensorId r = b.result(t, s, strides_like(x.tensor(), s), "avg_pool2d");
  Value y =
      emit1(b, "avg_pool2d", MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t}, r, {}, x);
  differentiable(y, "AvgPool2DBackward0", {e}, [kept](Gradients& g) {
    const Value& from = g.in[0];
    Builder& at = from.builder();
    const DType u = from.dtype();
    const Bytes copy = is_contiguous(from) ? Bytes{} : data_bytes(from), whole = data_bytes(kept);
    const TensorId into = at.result(u, kept.shape(), "avg_pool2d_backward");
    const MemoryOp op{.read = data_bytes(from) + copy,
                      .written = whole + copy,
                      .workspace = copy,
                      .dtype = u,
                      .kernels = copy > Bytes{} ? 2 : 1};
    g.out[0] = emit1(at, "avg_pool2d_backward", op, into, {copy}, g.in[0]);
  });
  return squeeze(std::move(y), 2);
}

}  // namespace vlmest::eager
