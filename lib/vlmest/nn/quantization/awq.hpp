// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/marlin.hpp>

/// AWQ (Lin et al., arXiv:2306.00978) as transformers 5 loads it, with gptqmodel's modules (integrations/awq.py;
/// gptqmodel nn_modules/qlinear, AWQuantLinear, AwqMarlinLinear, AwqGEMVLinear). Where bf16 is asked for it computes in
/// fp16 (quantizers/quantizer_awq.py, update_dtype): the same bytes.
namespace vlmest {

/// Words of zero points of one output, `pack` in a word: a multiple of 2 words where groups are of 64 inputs, of 4
/// where they are smaller (awq/modules/linear/gemv.py, calculate_zeros_width).
constexpr std::int64_t gemv_zeros_width(std::int64_t in, std::int64_t group, std::int64_t pack) {
  const std::int64_t multiple = group >= 128 ? 1 : group == 64 ? 2 : 4;
  return checked_mul(blocks(blocks(in / group, pack), multiple), multiple);
}

/// "gemm": qweight int32[in, out / 8], qzeros int32[in / group, out / 8], scales[in / group, out]; "gemv": qweight
/// int32[out, in / 8], qzeros int32[out, z], scales[out, z words of values].
inline StoredWeight declare(Context& c, const AwqWeight& w, const StoredSize& n, const StoredNames* given) {
  const StoredNames s = given ? *given : StoredNames{"qweight", "scales", "qzeros"};
  const std::int64_t pack = 32 / w.bits, group = w.group == 0 ? n.in : w.group;
  check_multiple(c, n.in, group, "inputs");
  check_multiple(c, w.gemv ? n.in : n.out, pack, w.gemv ? "inputs" : "outputs");
  StoredWeight r;
  if (w.gemv) {
    const std::int64_t width = gemv_zeros_width(n.in, group, pack);
    r.weight = packed_weight(c, s.weight, DType::int32, n.of(n.out, n.in / pack), n);
    r.quantized.extra = beside(c, r.weight, s.zeros, n.of(n.out, width), DType::int32);
    r.quantized.scales = beside(c, r.weight, s.scales, n.of(n.out, checked_mul(width, pack)), DType::fp16);
    return r;
  }
  r.weight = packed_weight(c, s.weight, DType::int32, n.of(n.in, n.out / pack), n);
  r.quantized.extra = beside(c, r.weight, s.zeros, n.of(n.in / group, n.out / pack), DType::int32);
  r.quantized.scales = beside(c, r.weight, s.scales, n.of(n.in / group, n.out), half_scales(c));
  if (n.experts == 0 && holds(ArchitectureRule::marlin, c.b.gpu)) marlin_workspace(c, r.weight);
  return r;
}

inline Value multiply(Context& c, const AwqWeight& w, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  if (w.gemv) return stored_matmul("awq_gemv", std::move(x), weight, q, std::move(bias));
  if (!holds(ArchitectureRule::marlin, c.b.gpu)) return dequantized_matmul(c, std::move(x), weight, q, std::move(bias));
  return marlin_matmul(c, "awq_marlin_gemm", std::move(x), weight, q, std::move(bias), false);
}

}  // namespace vlmest
