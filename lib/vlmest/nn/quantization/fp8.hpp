// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/library/rules.hpp>
#include <vlmest/nn/quantization/eight_bit.hpp>

/// float8_e4m3fn weights: transformers 5 integrations/finegrained_fp8.py (FP8Linear, FP8Experts), fbgemm_fp8.py
/// (FbgemmFp8Linear); compressed-tensors' float-quantized, modelopt's FP8.
namespace vlmest {

/// transformers 5.17 integrations/compressed_tensors.py, CompressedTensorsFP8Linear: one fp32 scale an output, as a
/// row, and none of the input; the head is none of these.
inline bool row_wise(const Context& c) {
  return c.quantization && c.stack().transformers_quantizers && c.quantization->fp8_kernels &&
         holds(ArchitectureRule::row_wise_fp8, c.b.gpu);
}

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
  StoredNames s{"weight", w.scale_name};
  if (std::string_view(w.scale_name) == "weight_scale_inv") s.input = "activation_scale";
  if (given) s = *given;
  const DType scale = w.scale == DType::bf16 ? half_scales(c) : w.scale;
  StoredWeight r;
  r.weight = packed_weight(c, s.weight, DType::fp8, n.of(n.out, n.in), n);
  if (row_wise(c)) {
    r.quantized.scales = beside(c, r.weight, s.scales, {1, n.out}, DType::fp32);
    return r;
  }
  r.quantized.scales = beside(c, r.weight, s.scales, scales_shape(w, n, least_rows), scale);
  if (w.static_activations)
    beside(c, r.weight, s.input, n.experts > 0 ? Shape{n.experts} : Shape{},
           w.scale == DType::bf16 ? scale : DType::fp32);
  if (w.upper_bound && n.experts == 0) beside(c, r.weight, "input_scale_ub", {1}, DType::fp32);
  return r;
}

inline void leftovers(Context& c, const Fp8Weight& w, TensorId weight, const StoredSize& n) {
  beside(c, weight, "weight_scale", scales_shape(w, n), half_scales(c));
  if (w.static_activations) beside(c, weight, "input_scale", {1}, half_scales(c));
}

/// quantize_fp8_per_row, with torch's functions: in fp32, which is held to the end.
inline QuantizedRows rounded_rows(const Value& flat) {
  using namespace eager;
  const std::int64_t rows = flat.size(0);
  const Value wide = to(flat, DType::fp32);
  Value most = reduce("amax", DType::fp32, Shape{rows}, pointwise("abs", DType::fp32, wide));
  Value positive = compare_scalar("gt.Scalar", most);
  most = where(std::move(positive), most, fill(flat.builder(), "ones_like", Shape{rows}, DType::fp32));
  Value scales = pointwise("div.Scalar", DType::fp32, std::move(most));
  Value values = pointwise("clamp", DType::fp32, pointwise("div.Tensor", DType::fp32, wide, view(scales, {rows, 1})));
  return {to(std::move(values), DType::fp8), std::move(scales)};
}

/// Rows of x are quantised in groups as wide as the weight's blocks, whole ones without blocks.
inline Value multiply(Context& c, const Fp8Weight& w, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  using namespace eager;
  if (row_wise(c)) {
    const DType t = x.dtype();
    return on_rows(std::move(x), q.in, q.out, Value(), [&](Value flat) {
      const Matmul op{.m = flat.size(0), .n = q.out, .k = q.in, .dtype = DType::fp8};
      QuantizedRows a = rounded_rows(flat);
      Value turned = transpose(weight, 0, 1), scales(c.b, q.scales);
      const TensorId r = c.b.result(t, {op.m, op.n}, "scaled_mm");
      if (!bias) return emit1(c.b, "_scaled_mm_v2", op, r, {}, a.values, turned, a.scales, scales);
      return emit1(c.b, "_scaled_mm_v2", op, r, {}, a.values, turned, a.scales, scales, bias);
    });
  }
  const std::int64_t columns = w.scales == Fp8Weight::Scales::block ? w.columns : q.in;
  return fp8_matmul(c, std::move(x), weight, q, std::move(bias), columns);
}

}  // namespace vlmest
