// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/graph/eager/channels_last.hpp>
#include <vlmest/graph/eager/data.hpp>
#include <vlmest/graph/eager/reduction_config.hpp>
#include <vlmest/library/convolution.hpp>

/// Convolutions: of pictures into patches, and inside a network, with strides and padding, in either layout of
/// channels.
namespace vlmest::eager {

void convolution_backward(const Convolution& op, Gradients& g, const Value& x, const Value& weight, Bytes scratch,
                          bool keeps_layout = true);  // gradient.hpp

/// Emits `op`, whose result is r, with its scratch, and records how its gradients are made: scratch(gradients, x) is
/// what these take. Drops its arguments.
template <class Scratch>
Value emit_convolution(const Convolution& op, TensorId r, std::initializer_list<Bytes> buffers, Value& x, Value& weight,
                       Value& bias, Scratch scratch, bool keeps_layout = true) {
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(x.builder(), "convolution", op, r, buffers, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw, scratch, keeps_layout](Gradients& g) {
    convolution_backward(op, g, sx, sw, scratch(g, sx), keeps_layout);
  });
  return out;
}

/// A convolution whose kernel covers its input: x[N, C, ...] by weight[O, C, ...] to one position each.
inline Convolution covering_convolution(const Value& x, const Value& weight, const Value& bias) {
  const std::int64_t taps = numel(weight.shape()).value() / checked_mul(weight.size(0), weight.size(1));
  return {.batch = x.size(0),
          .in_channels = x.size(1),
          .out_channels = weight.size(0),
          .in_positions = taps,
          .out_positions = 1,
          .kernel = taps,
          .dtype = x.dtype(),
          .bias = static_cast<bool>(bias)};
}

/// A 2-D convolution of NCHW data. Where cuDNN converts to its own layout (library/convolution.hpp, conv_scratch),
/// input, weight and result take a kernel each (a result of one position needs none). What is not row-major is copied
/// first.
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
  const Bytes own = conv_scratch(op, x.size(2)), rows = is_contiguous(x) ? Bytes{} : data_bytes(x);
  op.workspace = rows + own;
  op.kernels = (own > Bytes{} ? (op.out_positions > 1 ? 4 : 3) : 1) + (bias ? 1 : 0) + (rows > Bytes{} ? 1 : 0);
  // A gradient or an input that is not row-major is copied first (aten/src/ATen/native/Convolution.cpp).
  return emit_convolution(
      op, r, {rows, own}, x, weight, bias,
      [op, rows](const Gradients& g, const Value&) {
        const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
        return copy + rows + conv_weight_gradient_scratch(op);
      },
      false);
}

/// A 2-D convolution of squares of their own, x[N, C, S, S] with channels last, by a kernel of that size: cuDNN gets
/// the weight in the same layout, by a copy (aten/src/ATen/native/cudnn/ConvShared.cpp, cudnn_convolution_forward); the
/// result keeps it.
inline Value conv2d_channels_last(Value x, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  Convolution op = covering_convolution(x, weight, bias);
  const Bytes copy = op.kernel > 1 ? data_bytes(weight) : Bytes{}, own = channels_last_scratch(op, b.gpu);
  op.workspace = copy + own;
  op.kernels = 1 + (bias ? 1 : 0) + (copy > Bytes{} ? 1 : 0) + (splits_result(op, b.gpu) ? 1 : 0);
  const TensorId r = b.result(op.dtype, Shape{op.batch, op.out_channels, 1, 1}, "convolution");
  // A copy of the result's gradient and a counter with its alignment (recorded with 256 and 768 rows).
  const Bytes scratch = size_of(Elements(checked_mul(op.batch, op.out_channels)), op.dtype) + Bytes(4 + 127);
  return emit_convolution(op, r, {copy, own}, x, weight, bias,
                          [scratch](const Gradients&, const Value&) { return scratch; });
}

/// Scratch of the gradient of a bias, a sum over pictures and places of y[N, C, H, W].
inline Bytes bias_gradient_scratch(const Value& y) {
  std::array<bool, Shape::max_rank> summed{};
  for (const std::size_t i : {0, 2, 3}) summed[i] = true;
  const DType t = y.dtype();
  const ReductionScratch split = reduction_scratch(y.tensor(), summed, is_half(t) ? 4 : bits(t) / 8, y.builder().gpu);
  return split.partial + split.semaphores;
}

/// A 2-D convolution. Where the channels of x come last, so do the result's, and cuDNN gets the weight in that layout,
/// by a copy (aten/src/ATen/native/cudnn/ConvShared.cpp, cudnn_convolution_forward). Else an x with gaps is made
/// row-major first, for the gradients once more (Convolution.cpp). A bias is added in place.
inline Value conv2d_padded(Value x, Value weight, std::int64_t stride, std::int64_t padding, Value bias = {}) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
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
                 .dtype = t,
                 .bias = static_cast<bool>(bias)};
  const bool pointwise = op.kernel == 1;
  const Bytes rows = last || is_contiguous(x) ? Bytes{} : data_bytes(x);
  const Bytes copy = last && !pointwise ? data_bytes(weight) : Bytes{};
  const Bytes own = last ? (pointwise ? channels_last_scratch(op, b.gpu) : padded_channels_scratch(op))
                         : (pointwise ? pointwise_scratch(op, b.gpu) : conv_scratch(op, x.size(2)));
  const bool converts = !pointwise && own > Bytes{};
  op.workspace = rows + copy + own;
  op.kernels = 1 + (bias ? 1 : 0) + (rows > Bytes{} ? 1 : 0) + (copy > Bytes{} ? 1 : 0) +
               (last && pointwise && splits_result(op, b.gpu) ? 1 : 0) + (converts ? (last ? 2 : 3) : 0);
  const TensorId r = last ? b.result(t, s, channels_last_strides(s), "convolution") : b.result(t, s, "convolution");
  // A gradient in another layout is copied first, and the weight again; its copy is gone before its gradient is made.
  return emit_convolution(
      op, r, {rows, copy, own}, x, weight, bias,
      [op, last, pointwise, copy, rows](const Gradients& g, const Value&) {
        const bool lies_so = last ? is_channels_last(g.in[0]) : is_contiguous(g.in[0]);
        const Bytes repacked = lies_so ? Bytes{} : data_bytes(g.in[0]);
        const Bytes sums = last        ? padded_channels_scratch(op)
                           : pointwise ? pointwise_gradient_scratch(op)
                                       : strided_conv_gradient_scratch(op);
        const Bytes most = repacked + (g.wants(1) ? rows : copy) + (g.wants(1) || last ? sums : Bytes{});
        if (!g.wants(2)) return most;
        return std::max(most, bias_gradient_scratch(g.in[0]) + size_of(Elements(op.out_channels), op.dtype));
      },
      last);
}

}  // namespace vlmest::eager
