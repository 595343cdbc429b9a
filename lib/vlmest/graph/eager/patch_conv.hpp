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
  Convolution op = covering_convolution(x, weight, bias);
  op.kernels = bias ? 2 : 1;
  const TensorId r = x.builder().result(op.dtype, Shape{op.batch, op.out_channels, 1, 1, 1}, "convolution");
  return emit_convolution(op, r, {}, x, weight, bias,
                          [op](const Gradients&, const Value&) { return patch_gradient_scratch(op); });
}

/// The same in two dimensions: x[N, C, S, S] with weight[O, C, S, S] to [N, O, 1, 1]. MoonViT's patch embedding. The
/// bias's gradient is summed up when that of the weight is there, through scratch of its own. An x with gaps is made
/// row-major first, for the gradients once more (Convolution.cpp).
inline Value patch_conv2d(Value x, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Convolution op = covering_convolution(x, weight, bias);
  const Bytes rows = is_contiguous(x) ? Bytes{} : data_bytes(x), own = patch_scratch(op);
  op.workspace = rows + own;
  op.kernels = (own > Bytes{} ? 3 : 1) + (bias ? 1 : 0) + (rows > Bytes{} ? 1 : 0);
  const TensorId r = x.builder().result(op.dtype, Shape{op.batch, op.out_channels, 1, 1}, "convolution");
  return emit_convolution(op, r, {rows, own}, x, weight, bias, [op, rows](const Gradients& g, const Value& sx) {
    const ReductionScratch sum =
        reduction_scratch(g.in[0].tensor(), 0, is_half(op.dtype) ? 4 : bits(op.dtype) / 8, sx.builder().gpu);
    const Bytes of_bias = size_of(Elements(op.out_channels), op.dtype);
    return rows + std::max(conv_weight_gradient_scratch(op), of_bias + sum.partial + sum.semaphores);
  });
}

}  // namespace vlmest::eager
