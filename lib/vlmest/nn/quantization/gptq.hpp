// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/marlin.hpp>

/// GPTQ (Frantar et al., arXiv:2210.17323) as transformers 5 loads it: optimum's GPTQQuantizer puts gptqmodel's modules
/// in the place of the linears of the language model's layers (gptqmodel nn_modules/qlinear/marlin.py, MarlinLinear;
/// torch.py, TorchLinear).
namespace vlmest {

/// Symmetric 4- and 8-bit weights run in Marlin, all others are dequantised for each product.
constexpr bool runs_in_marlin(const GptqWeight& w, std::int64_t out, const Gpu& gpu) {
  const bool group = w.group == 0 || w.group == 32 || w.group == 64 || w.group == 128;
  return holds(ArchitectureRule::marlin, gpu) && w.symmetric && group && (w.bits == 4 || w.bits == 8) && out % 64 == 0;
}

/// qweight int32[in bits / 32, out], scales[in / group, out], and for Marlin (MarlinLinear.post_init) the groups of its
/// inputs and their order, int32[in] each, where these are reordered, else qzeros int32[in / group, out bits / 32] and
/// g_idx int32[in].
inline StoredWeight declare(Context& c, const GptqWeight& w, const StoredSize& n, const StoredNames* given) {
  const StoredNames s = given ? *given : StoredNames{"qweight", "scales", "qzeros"};
  const std::int64_t rows = groups(n.in, w.group);
  check_multiple(c, checked_mul(n.in, w.bits), 32, "bits of inputs");
  check_multiple(c, checked_mul(n.out, w.bits), 32, "bits of outputs");
  StoredWeight r;
  r.weight = packed_weight(c, s.weight, DType::int32, n.of(checked_mul(n.in, w.bits) / 32, n.out), n);
  const bool marlin = runs_in_marlin(w, n.out, c.b.gpu);
  if (!marlin)
    r.quantized.extra = beside(c, r.weight, s.zeros, n.of(rows, checked_mul(n.out, w.bits) / 32), DType::int32);
  r.quantized.scales = beside(c, r.weight, s.scales, n.of(rows, n.out), half_scales(c));
  if (!marlin || (w.reordered && w.group != 0)) beside(c, r.weight, s.index, n.of(n.in), DType::int32);
  if (marlin && w.reordered && w.group != 0) beside(c, r.weight, "g_idx_sort_indices", n.of(n.in), DType::int32);
  if (marlin && n.experts == 0) marlin_workspace(c, r.weight);
  return r;
}

inline Value multiply(Context& c, const GptqWeight& w, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  if (!runs_in_marlin(w, q.out, c.b.gpu)) return dequantized_matmul(c, std::move(x), weight, q, std::move(bias));
  return marlin_matmul(c, "gptq_marlin_gemm", std::move(x), weight, q, std::move(bias), w.reordered && w.group != 0);
}

}  // namespace vlmest
