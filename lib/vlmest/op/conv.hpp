// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// A convolution of any rank, written as its implicit product: every output position reads `kernel` taps of
/// `in_channels / groups` channels. aten convolution.
struct Convolution {
  std::int64_t batch = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t in_positions = 1;   ///< product of the input's spatial sizes
  std::int64_t out_positions = 1;  ///< product of the output's spatial sizes
  std::int64_t kernel = 1;         ///< product of the kernel's spatial sizes
  std::int64_t groups = 1;
  DType dtype = DType::bf16;
  bool bias = false;
  int products = 1;   ///< a backward makes one for each of the input's and the weight's gradients
  Bytes workspace{};  ///< scratch of the library's algorithm
  int kernels = 1;
};

/// FLOPs: torch/utils/flop_counter.py, conv_flop_count.
constexpr Cost cost(const Convolution& o) {
  const std::int64_t taps = checked_mul(o.kernel, o.in_channels / o.groups);
  const std::int64_t outputs = checked_mul(checked_mul(o.batch, o.out_positions), o.out_channels);
  Cost r;
  r.flops = r.flops_causal = flops(Macs(checked_mul(checked_mul(outputs, taps), o.products)));
  r.read = size_of(Elements(checked_mul(checked_mul(o.batch, o.in_channels), o.in_positions)), o.dtype) +
           size_of(Elements(checked_mul(o.out_channels, taps)), o.dtype);
  if (o.bias) r.read += size_of(Elements(o.out_channels), o.dtype);
  r.written = size_of(Elements(outputs), o.dtype);
  r.workspace = o.workspace;
  r.engine = o.dtype == DType::fp32 ? Engine::cuda_core : Engine::tensor_core;
  r.dtype = o.dtype;
  r.kernels = o.kernels;
  return r;
}

}  // namespace vlmest
