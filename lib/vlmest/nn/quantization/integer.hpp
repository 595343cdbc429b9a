// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/eight_bit.hpp>
#include <vlmest/nn/quantization/marlin.hpp>

/// Integer weights of compressed-tensors 0.16 (compressors/pack_quantized, naive_quantized; quantization/lifecycle/
/// initialize.py, initialize_qparams) and of EETQ (transformers integrations/eetq.py).
namespace vlmest {

/// Scales of a weight[out, in]: one, one an output, or one a group of inputs.
inline Shape scales_shape(const IntWeight& w, const StoredSize& n) {
  if (w.whole) return n.of(1);
  return n.of(n.out, groups(n.in, w.group));
}

/// pack-quantized: weight_packed int32[out, in bits / 32], weight_scale[out, in / group], weight_shape int64[2], and
/// where they are not symmetric weight_zero_point int32[out bits / 32, in / group]; int- and naive-quantized: weight
/// int8[out, in] and zero points of one byte; EETQ: weight int8[in, out], weight_scales fp16[out].
inline StoredWeight declare(Context& c, const IntWeight& w, const StoredSize& n, const StoredNames* given) {
  StoredWeight r;
  if (w.transposed) {
    const StoredNames s = given ? *given : StoredNames{"weight", "weight_scales"};
    r.weight = packed_weight(c, s.weight, DType::int8, n.of(n.in, n.out), n);
    r.quantized.scales = beside(c, r.weight, s.scales, n.of(n.out), DType::fp16);
    return r;
  }
  const StoredNames s =
      given ? *given
            : StoredNames{w.packed ? "weight_packed" : "weight", "weight_scale", "weight_zero_point", "weight_g_idx"};
  const std::int64_t words = blocks(checked_mul(n.in, w.bits), 32);
  r.weight = w.packed ? packed_weight(c, s.weight, DType::int32, n.of(n.out, words), n)
                      : packed_weight(c, s.weight, DType::int8, n.of(n.out, n.in), n);
  const Shape scales = scales_shape(w, n);
  r.quantized.scales = beside(c, r.weight, s.scales, scales, half_scales(c));
  if (!w.symmetric && w.packed)
    r.quantized.extra =
        beside(c, r.weight, s.zeros, n.of(blocks(checked_mul(n.out, w.bits), 32), groups(n.in, w.group)), DType::int32);
  if (!w.symmetric && !w.packed) r.quantized.extra = beside(c, r.weight, s.zeros, scales, DType::int8);
  if (w.packed && n.experts == 0) beside(c, r.weight, "weight_shape", {2}, DType::int64);
  if (w.reordered) beside(c, r.weight, s.index, n.of(n.in), DType::int32);
  if (w.static_activations && n.experts == 0) beside(c, r.weight, "input_scale", {1}, half_scales(c));
  return r;
}

/// What stays of it beside a weight that was unpacked: scales, and zero points of one byte each.
inline void leftovers(Context& c, const IntWeight& w, TensorId weight, const StoredSize& n) {
  const Shape scales = scales_shape(w, n);
  beside(c, weight, "weight_scale", scales, half_scales(c));
  if (!w.symmetric) beside(c, weight, "weight_zero_point", scales, DType::int8);
  if (w.packed) beside(c, weight, "weight_shape", {2}, DType::int64);
  if (w.reordered) beside(c, weight, "weight_g_idx", n.of(n.in), DType::int32);
  if (w.static_activations) beside(c, weight, "input_scale", {1}, half_scales(c));
}

/// Packed weights run in Marlin, 8-bit ones of 8-bit activations on quantised rows of x.
inline Value multiply(Context& c, const IntWeight& w, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  if (w.transposed) return stored_matmul("w8_a16_gemm", std::move(x), weight, q, std::move(bias));
  if (!w.packed) return int8_matmul(c, std::move(x), weight, q, std::move(bias));
  return marlin_matmul(c, "gptq_marlin_gemm", std::move(x), weight, q, std::move(bias), w.reordered);
}

}  // namespace vlmest
