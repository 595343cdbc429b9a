// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// A convolution of every channel by itself, by torch's own kernels, one for each result (aten/src/ATen/native/cuda/
/// DepthwiseConv2d.cu): no product of matrices.
struct DepthwiseConvolution {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t multiplier = 1;     ///< results of each channel
  std::int64_t in_positions = 1;   ///< product of the input's spatial sizes
  std::int64_t out_positions = 1;  ///< product of the output's spatial sizes
  std::int64_t taps = 1;           ///< product of the kernel's spatial sizes
  DType dtype = DType::bf16;
  bool forward = true;  ///< which results it makes
  bool input_gradient = false;
  bool weight_gradient = false;
  bool bias_gradient = false;  ///< a sum, beside those kernels
  Bytes workspace{};           ///< packed copies of what is not row-major
  int copies = 0;
};

/// Results that one call makes.
constexpr int results(const DepthwiseConvolution& o) {
  return (o.forward ? 1 : 0) + (o.input_gradient ? 1 : 0) + (o.weight_gradient ? 1 : 0);
}

/// FLOPs: torch/utils/flop_counter.py, conv_flop_count, for each result.
constexpr Cost cost(const DepthwiseConvolution& o) {
  const std::int64_t filters = checked_mul(o.channels, o.multiplier);
  const std::int64_t in = checked_mul(checked_mul(o.batch, o.channels), o.in_positions),
                     out = checked_mul(checked_mul(o.batch, filters), o.out_positions);
  Cost r;
  r.flops = r.flops_causal = flops(Macs(checked_mul(checked_mul(out, o.taps), results(o))));
  r.read = size_of(Elements(in), o.dtype) + size_of(Elements(checked_mul(filters, o.taps)), o.dtype) + o.workspace;
  r.written = size_of(Elements(out), o.dtype) + o.workspace;
  r.workspace = o.workspace;
  r.engine = Engine::cuda_core;
  r.dtype = o.dtype;
  r.kernels = results(o) + (o.bias_gradient ? 1 : 0) + o.copies;
  return r;
}

}  // namespace vlmest
