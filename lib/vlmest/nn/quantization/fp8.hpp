// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/eight_bit.hpp>

/// float8_e4m3fn weights: transformers 5 integrations/finegrained_fp8.py (FP8Linear, FP8Experts), fbgemm_fp8.py
/// (FbgemmFp8Linear); compressed-tensors' float-quantized, modelopt's FP8.
namespace vlmest {

/// Scales of a weight[out, in]; a fused pair of matrices has at least two rows of them (_alloc_expert_proj).
inline Shape scales_shape(const Fp8Weight& w, const StoredSize& n, std::int64_t least_rows = 1) {
  switch (w.scales) {
    case Fp8Weight::Scales::tensor: return n.experts > 0 ? n.of(least_rows, 1) : Shape{};
    case Fp8Weight::Scales::channel: return n.of(n.out, 1);
    case Fp8Weight::Scales::block: break;
  }
  return n.of(std::max(blocks(n.out, w.rows), least_rows), blocks(n.in, w.columns));
}

/// weight fp8[out, in] and its scales, a scalar of the layer's input where that is static; fbgemm: input_scale_ub.
inline StoredWeight declare(Context& c, const Fp8Weight& w, const StoredSize& n, const StoredNames* given,
                            std::int64_t least_rows = 1) {
  const StoredNames s = given ? *given : StoredNames{"weight", w.scale_name};
  StoredWeight r;
  r.weight = packed_weight(c, s.weight, DType::fp8, n.of(n.out, n.in), n);
  r.quantized.scales =
      beside(c, r.weight, s.scales, scales_shape(w, n, least_rows), w.scale == DType::bf16 ? half_scales(c) : w.scale);
  if (w.static_activations) beside(c, r.weight, "activation_scale", n.experts > 0 ? n.of(1) : Shape{}, DType::fp32);
  if (w.upper_bound && n.experts == 0) beside(c, r.weight, "input_scale_ub", {1}, DType::fp32);
  return r;
}

inline void leftovers(Context& c, const Fp8Weight& w, TensorId weight, const StoredSize& n) {
  beside(c, weight, "weight_scale", scales_shape(w, n), half_scales(c));
  if (w.static_activations) beside(c, weight, "input_scale", {1}, half_scales(c));
}

/// Rows of x are quantised in groups as wide as the weight's blocks, whole ones without blocks.
inline Value multiply(Context& c, const Fp8Weight& w, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  const std::int64_t columns = w.scales == Fp8Weight::Scales::block ? w.columns : q.in;
  return fp8_matmul(c, std::move(x), weight, q, std::move(bias), columns);
}

}  // namespace vlmest
