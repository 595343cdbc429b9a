// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/graph/eager/product.hpp>

/// Convolutions of each channel by itself.
namespace vlmest::eager {

/// torch.nn.functional.conv1d of x[N, C, L] with weight[C m, 1, taps], C groups and a bias[C m] that may be empty:
/// torch's own kernel, because cuDNN is asked for square filters alone. A signal that is not row-major is packed first,
/// in the backward again (aten/src/ATen/native/Convolution.cpp, use_cudnn_depthwise; cuda/DepthwiseConv2d.cu). The bias
/// is added by the kernel; its gradient is a sum of its own.
inline Value depthwise_conv1d(Value x, Value weight, Value bias, std::int64_t padding) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t channels = x.size(1), filters = weight.size(0), taps = weight.size(2),
                     length = checked_add(x.size(2), 2 * padding) - taps + 1;
  const Bytes packed = is_contiguous(x) ? Bytes{} : data_bytes(x);
  const DepthwiseConvolution op{.batch = x.size(0),
                                .channels = channels,
                                .multiplier = filters / channels,
                                .in_positions = x.size(2),
                                .out_positions = length,
                                .taps = taps,
                                .dtype = t,
                                .workspace = packed,
                                .copies = packed > Bytes{} ? 1 : 0};
  const TensorId r = b.result(t, Shape{x.size(0), filters, length}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {packed}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw](Gradients& g) {
    Builder& at = sx.builder();
    std::vector<TensorId> outs;
    if (g.wants(0)) outs.push_back(at.result(op.dtype, sx.shape(), "input gradient"));
    if (g.wants(1)) outs.push_back(at.result(op.dtype, sw.shape(), "weight gradient"));
    if (g.wants(2)) outs.push_back(at.result(op.dtype, Shape{sw.size(0)}, "bias gradient"));
    const Bytes copied = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
    DepthwiseConvolution back = op;
    back.forward = false;
    back.input_gradient = g.wants(0);
    back.weight_gradient = g.wants(1);
    back.bias_gradient = g.wants(2);
    back.workspace = op.workspace + copied;
    back.copies = op.copies + (copied > Bytes{} ? 1 : 0);
    const std::array<TensorId, 3> ins{g.in[0].id(), sx.id(), sw.id()};
    at.emit("convolution_backward", back, ins, outs, {op.workspace, copied});
    std::size_t next = 0;
    for (std::size_t i = 0; i < 3; ++i)
      if (g.wants(i)) g.out[i] = Value(at, outs[next++]);
  });
  return out;
}

}  // namespace vlmest::eager
