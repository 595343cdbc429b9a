// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/stored.hpp>

/// Two e2m1 values a byte: nvfp4 of compressed-tensors (compressors/nvfp4) and of NVIDIA's modelopt, mxfp4 (OCP
/// Microscaling Formats 1.0; transformers integrations/mxfp4.py, Mxfp4GptOssExperts; compressors/mxfp4).
namespace vlmest {

/// weight_packed uint8[out, in / 2] and weight_scale[out, in / group], of fp8 with a weight_global_scale fp32[1], or
/// uint8 exponents; input_global_scale fp32[1] where activations have a static one. modelopt: weight, weight_scale,
/// weight_scale_2, input_scale. Of experts in mxfp4: ..._blocks uint8[experts, out, in / 32, 16] and ..._scales.
inline StoredWeight declare(Context& c, const Fp4Weight& w, const StoredSize& n, const StoredNames* given) {
  StoredNames s{"weight_packed", "weight_scale"};
  s.input = "input_global_scale";
  if (w.modelopt) s = {"weight", "weight_scale", "", "", "weight_scale_2"};
  if (given) s = *given;
  check_multiple(c, n.in, 2, "inputs");
  const std::int64_t scales = groups(n.in, w.group);
  StoredWeight r;
  if (n.experts > 0 && !w.nv && n.in % w.group == 0)
    r.weight = packed_weight(c, s.weight, DType::uint8, {n.experts, n.out, scales, w.group / 2}, n);
  else
    r.weight = packed_weight(c, s.weight, DType::uint8, n.of(n.out, n.in / 2), n);
  r.quantized.scales = beside(c, r.weight, s.scales, n.of(n.out, scales), w.nv ? DType::fp8 : DType::uint8);
  if (w.nv) r.quantized.extra = beside(c, r.weight, s.whole, n.of(1), DType::fp32);
  if (w.static_activations) beside(c, r.weight, s.input, n.of(1), DType::fp32);
  return r;
}

inline void leftovers(Context& c, const Fp4Weight& w, TensorId weight, const StoredSize& n) {
  beside(c, weight, "weight_scale", n.of(n.out, groups(n.in, w.group)), half_scales(c));
  if (w.nv) beside(c, weight, "weight_global_scale", {1}, DType::fp32);
  if (w.static_activations) beside(c, weight, "input_global_scale", {1}, DType::fp32);
}

inline Value multiply(Context&, const Fp4Weight&, Value x, const Value& weight, const QuantizedWeight& q, Value bias) {
  return stored_matmul("fp4_gemm", std::move(x), weight, q, std::move(bias));
}

}  // namespace vlmest
