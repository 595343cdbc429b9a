// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/eight_bit.hpp>

/// bitsandbytes 0.50: Linear4bit and Linear8bitLt, which transformers puts in the place of nn.Linear (integrations/
/// bitsandbytes.py, replace_with_bnb_linear).
namespace vlmest {

/// Blocks of 64 values with an fp32 scale each and a table of 16 values (bitsandbytes/functional.py, quantize_4bit);
/// doubly quantised (Dettmers et al., arXiv:2305.14314, section 3): the scales, less their mean, in 8 bits, in blocks
/// of 256 with an fp32 scale each and a table of 256 values. The weight is shown with its own shape; the library keeps
/// the same bytes as bnb_4bit_quant_storage[n, 1].
inline StoredWeight declare(Context& c, const Bnb4Weight& w, const StoredSize& n, const StoredNames*) {
  StoredWeight r;
  r.weight = c.b.persistent("weight", Role::weight, DType::nf4, n.of(n.out, n.in));
  const std::int64_t scales = blocks(checked_mul(n.in, n.out), 64);
  QuantizedWeight& q = r.quantized;
  if (w.twice) {
    q.extra = beside(c, r.weight, "quant_map", {16}, DType::fp32);
    q.mean = beside(c, r.weight, "nested_offset", Shape{}, DType::fp32);
    q.scales = beside(c, r.weight, "absmax", {scales}, DType::uint8);
    q.nested_scales = beside(c, r.weight, "nested_absmax", {blocks(scales, 256)}, DType::fp32);
    q.nested_table = beside(c, r.weight, "nested_quant_map", {256}, DType::fp32);
    return r;
  }
  q.scales = beside(c, r.weight, "absmax", {scales}, DType::fp32);
  q.extra = beside(c, r.weight, "quant_map", {16}, DType::fp32);
  return r;
}

/// LLM.int8(): one fp32 scale for each output (bitsandbytes/nn/modules.py, Int8Params).
inline StoredWeight declare(Context& c, const Bnb8Weight&, const StoredSize& n, const StoredNames*) {
  StoredWeight r;
  r.weight = c.b.persistent("weight", Role::weight, DType::int8, n.of(n.out, n.in));
  r.quantized.scales = beside(c, r.weight, "SCB", {n.out}, DType::fp32);
  return r;
}

/// What a 4-bit weight needs to be computed with.
struct FourBit {
  Value weight, scales, mean, nested_scales, nested_table;
};
inline FourBit four_bit(Context& c, const Value& weight, const QuantizedWeight& q) {
  const auto value = [&](TensorId t) { return t == none ? Value() : Value(c.b, t); };
  return {weight, value(q.scales), value(q.mean), value(q.nested_scales), value(q.nested_table)};
}

/// Doubly quantised scales as fp32, without their mean: a temporary (bitsandbytes/functional.py, dequantize_blockwise).
inline Value scales_without_mean(const FourBit& w) {
  using namespace eager;
  Builder& b = w.weight.builder();
  const TensorId r = b.result(DType::fp32, w.scales.shape(), "scales");
  const Bytes wide = size_of(numel(w.scales.shape()), DType::fp32);
  const MemoryOp op{.read = data_bytes(w.scales) + data_bytes(w.nested_scales), .written = wide, .dtype = DType::fp32};
  Value in = w.scales, blocks = w.nested_scales, table = w.nested_table;
  return emit1(b, "dequantize_blockwise", op, r, {}, in, table, blocks);
}

/// The weight as a temporary of type t, given fp32 scales.
inline Value dequantized(const FourBit& w, const Value& scales, DType t) {
  using namespace eager;
  Builder& b = w.weight.builder();
  const Shape shape = w.weight.shape();
  const TensorId r = b.result(t, shape, "dequantized weight");
  const MemoryOp op{.read = data_bytes(w.weight) + data_bytes(scales), .written = size_of(numel(shape), t), .dtype = t};
  Value in = w.weight, by = scales;
  return emit1(b, "dequantize", op, r, {}, in, by);
}

/// Rows of activations of type t up to which bitsandbytes' own kernel multiplies by the stored weight[out, in], instead
/// of dequantising it for a product (bitsandbytes 0.50.1, backends/cuda/ops.py, _gemm_4bit_use_custom_cuda, as its
/// authors measured): 7 for nearly every weight, 4 where the compute capability is 10.x; on Hopper more where the
/// weight is small or tiles of 64 outputs fill the multiprocessors. Followed are Hopper's numbers; other architectures
/// have larger ones for some weights, and 4 for some small ones.
constexpr std::int64_t rows_of_4bit_kernel(std::int64_t out, std::int64_t in, DType t, const Gpu& gpu) {
  if (in % 64 != 0) return 0;  // not whole blocks
  if (!is_half(t)) return 7;
  if (holds(ArchitectureRule::gemm_4bit_of_4_rows, gpu)) return 4;
  if (!holds(ArchitectureRule::gemm_4bit_by_waves, gpu)) return 7;
  const std::int64_t tiles = (out + 63) / 64, wave = gpu.multiprocessors;
  if (out < (std::int64_t{4} << 20) / in) {
    if (in < out / 2) return tiles * 3 < wave ? 512 : 320;
    return tiles * 4 <= wave ? 32 : tiles * 2 <= wave ? 16 : 4;
  }
  if (tiles >= wave * 3) return 64;
  if (tiles >= wave * 2) return 48;
  if (tiles >= wave) return 32;
  const bool deep = in >= out && tiles * 4 < wave * 3;
  return tiles >= wave / 2 && !deep ? 16 : 7;
}

/// bitsandbytes::gemm_4bit, which reads the weight as it is stored.
inline Value gemm_4bit(const Value& arg, const FourBit& w, const Value& bias) {
  using namespace eager;
  Value x = contiguous(arg);
  Builder& b = x.builder();
  const std::int64_t out = w.weight.size(0), in = w.weight.size(1);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = out;
  const TensorId r = b.result(x.dtype(), shape, "gemm_4bit");
  Bytes stored = data_bytes(w.weight) + data_bytes(w.scales);
  if (w.nested_scales) stored += data_bytes(w.nested_scales);
  const StoredMatmul op{.m = numel(x.shape()).value() / in, .n = out, .k = in, .stored = stored, .dtype = x.dtype()};
  Value weight = w.weight, scales = w.scales;
  if (!bias) return emit1(b, "gemm_4bit", op, r, {}, x, weight, scales);
  Value added = bias;
  return emit1(b, "gemm_4bit", op, r, {}, x, weight, scales, added);
}

/// bitsandbytes/autograd/_functions.py, MatMul4Bit: the weight is dequantised for the product, unless x has few rows,
/// and again for the gradient of x; nothing but the stored weight is kept for that. The forward holds both forms of
/// doubly quantised scales until its product is done (backends/cuda/ops.py, _dequant_linear_fallback), the backward
/// adds their mean in place (functional.py, dequantize_4bit).
inline Value matmul_4bit(Value arg, FourBit w, Value bias, bool few_rows) {
  using namespace eager;
  const Value x = std::move(arg);
  Builder& b = x.builder();
  const GradEdge e = edge(x);
  const DType t = x.dtype();
  Value y;
  {
    NoGrad off(b);
    if (few_rows) {
      y = gemm_4bit(x, w, bias);
    } else {
      const Value raw = w.nested_scales ? scales_without_mean(w) : Value();
      const Value scales = raw ? add(raw, w.mean) : w.scales;
      y = linear(x, dequantized(w, scales, t), std::move(bias), true);
    }
  }
  differentiable(y, "MatMul4Bit", {e}, [w = std::move(w), t](Gradients& g) {
    Value scales = w.nested_scales ? add_(scales_without_mean(w), w.mean) : w.scales;
    Value weight = dequantized(w, scales, t);
    scales = Value();
    g.out[0] = stack_matmul(g.in[0], std::move(weight), true);
  });
  return y;
}

/// The type that Linear4bit computes in: its own, or that of bf16 and fp32 inputs (bitsandbytes/nn/modules.py,
/// Linear4bit.set_compute_type).
constexpr DType compute_type(const Bnb4Weight& w, DType x) { return x == DType::fp16 ? w.compute : x; }

/// Linear4bit.forward. Under autocast the module itself computes in the lower type and casts back.
inline Value multiply(Context& c, const Bnb4Weight& w, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  using namespace eager;
  const DType t = x.dtype();
  const std::int64_t out = weight.size(0), in = weight.size(1), rows = numel(x.shape()).value() / in;
  x = to(std::move(x), c.b.autocast.enabled ? c.b.autocast.lower : compute_type(w, t));
  if (bias && !c.b.autocast.enabled) bias = to(std::move(bias), x.dtype());  // autocast keeps the copy that it makes
  const bool few = rows <= rows_of_4bit_kernel(out, in, x.dtype(), c.b.gpu);
  return to(matmul_4bit(std::move(x), four_bit(c, weight, q), std::move(bias), few), t);
}
inline Value multiply(Context& c, const Bnb8Weight&, Value x, const Value& weight, const QuantizedWeight& q,
                      Value bias) {
  return int8_matmul(c, std::move(x), weight, q, std::move(bias));
}

}  // namespace vlmest
