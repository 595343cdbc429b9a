// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/linear_function.hpp>

namespace vlmest {

/// A linear weight stored in fewer bits than the activations, as the libraries behind transformers keep it.
/// - nf4: bitsandbytes, blocks of 64 with an fp32 scale each and a table of 16 values
///   (bitsandbytes/functional.py, quantize_4bit). Below adapters it is doubly quantised (Dettmers et al.,
///   arXiv:2305.14314, section 3): the scales, less their mean, in 8 bits, in blocks of 256 with an fp32 scale each and
///   a table of 256 values.
/// - int4: groups of 128 inputs with a 16-bit scale and a 4-bit zero point (AWQ and GPTQ checkpoints).
/// - int8: LLM.int8(), one fp32 scale for each output (bitsandbytes/autograd/_functions.py, MatMul8bitLt).
/// - fp8: blocks of 128 x 128 with an fp32 scale (transformers integrations/finegrained_fp8.py).
struct QuantizedWeight {
  TensorId scales = none;
  TensorId extra = none;  ///< nf4: the table; int4: zero points
  TensorId mean = none;   ///< of doubly quantised scales
  TensorId nested_scales = none, nested_table = none;
};

/// Whether nf4 scales are quantised too: bnb_4bit_use_double_quant, as QLoRA sets it.
inline bool quantizes_twice(const Plan& p) { return p.weights == DType::nf4 && p.lora.rank > 0; }

/// Whether a linear of the current scope is stored in the plan's weight type: the language model's, but not its head.
inline bool quantizes(const Context& c, const char* name) {
  if (!c.plan.weights || *c.plan.weights == c.dtype()) return false;
  const Scope& here = c.b.graph.scopes[static_cast<std::size_t>(c.b.scope())];
  return here.part == Part::language && std::string_view(name) != "lm_head";
}

inline QuantizedWeight make_quantized(Context& c, DType storage, std::int64_t in, std::int64_t out) {
  QuantizedWeight q;
  const auto blocks = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  const std::int64_t n = checked_mul(in, out);
  switch (storage) {
    case DType::nf4:
      if (quantizes_twice(c.plan)) {
        q.extra = buffer(c, "quant_map", {16}, DType::fp32);
        q.mean = buffer(c, "nested_offset", Shape{}, DType::fp32);
        q.scales = buffer(c, "absmax", {blocks(n, 64)}, DType::uint8);
        q.nested_scales = buffer(c, "nested_absmax", {blocks(blocks(n, 64), 256)}, DType::fp32);
        q.nested_table = buffer(c, "nested_quant_map", {256}, DType::fp32);
        break;
      }
      q.scales = buffer(c, "absmax", {blocks(n, 64)}, DType::fp32);
      q.extra = buffer(c, "quant_map", {16}, DType::fp32);
      break;
    case DType::int4:
      q.scales = buffer(c, "scales", {blocks(in, 128), out}, is_half(c.dtype()) ? c.dtype() : DType::fp16);
      q.extra = buffer(c, "qzeros", {blocks(in, 128), out}, DType::int4);
      break;
    case DType::int8: q.scales = buffer(c, "SCB", {out}, DType::fp32); break;
    case DType::fp8: q.scales = buffer(c, "weight_scale_inv", {blocks(out, 128), blocks(in, 128)}, DType::fp32); break;
    default: break;  // a wider or equal floating type has no scales
  }
  return q;
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
constexpr std::int64_t rows_of_4bit_kernel(std::int64_t out, std::int64_t in, DType t, int compute_capability,
                                           int multiprocessors) {
  if (in % 64 != 0) return 0;  // not whole blocks
  if (!is_half(t)) return 7;
  if (compute_capability / 10 == 10) return 4;
  if (compute_capability / 10 != 9) return 7;
  const std::int64_t tiles = (out + 63) / 64, wave = multiprocessors;
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

/// bitsandbytes::gemm_4bit, which reads the weight as it is stored. It counts by its bytes; FlopCounterMode does not
/// know it either.
inline Value gemm_4bit(const Value& arg, const FourBit& w, const Value& bias) {
  using namespace eager;
  Value x = contiguous(arg);
  Builder& b = x.builder();
  const std::int64_t out = w.weight.size(0);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = out;
  const TensorId r = b.result(x.dtype(), shape, "gemm_4bit");
  Bytes read = data_bytes(w.weight) + data_bytes(w.scales) + data_bytes(x);
  if (w.nested_scales) read += data_bytes(w.nested_scales);
  const MemoryOp op{.read = read, .written = size_of(numel(shape), x.dtype()), .dtype = x.dtype()};
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

/// x[..., in] times a stored weight, plus a bias where there is one: 4-bit weights are dequantised to a temporary of
/// the activations' type, or multiplied as they are where x has few rows, 8-bit ones multiply quantised rows of x,
/// other types are cast. What is not stored so (embeddings, norms, the head) has the plan's type; peft's
/// prepare_model_for_kbit_training casts it to fp32: that is Plan::amp, or fp32 without autocast.
inline Value quantized_linear(Context& c, Value x, const Value& weight, const QuantizedWeight& q, Value bias) {
  using namespace eager;
  const DType t = x.dtype(), storage = weight.dtype();
  const std::int64_t out = weight.size(0), in = weight.size(1), rows = numel(x.shape()).value() / in;
  Shape shape = x.shape();
  shape[shape.rank() - 1] = out;
  const auto finish = [&](Value y) {
    y = view(std::move(y), shape);
    return bias ? add(std::move(y), std::move(bias)) : y;
  };
  if (storage == DType::int8 || storage == DType::fp8) {
    Value flat = reshape(std::move(x), {rows, in});
    Value scales(c.b, q.scales);
    const Shape groups = storage == DType::int8 ? Shape{rows} : Shape{rows, (in + 127) / 128};
    const std::array<TensorId, 1> from{flat.id()};
    const std::array<TensorId, 2> made{c.b.result(storage, {rows, in}, "quantized"),
                                       c.b.result(DType::fp32, groups, "row scales")};
    const Bytes narrow = size_of(Elements(checked_mul(rows, in)), storage) + size_of(numel(groups), DType::fp32);
    c.b.emit("quantize_rows", MemoryOp{.read = data_bytes(flat), .written = narrow, .dtype = t}, from, made);
    Value a(c.b, made[0]), row_scales(c.b, made[1]);
    const Matmul op{.m = rows, .n = out, .k = in, .dtype = storage};
    Value w = transpose(weight, 0, 1);
    if (storage == DType::fp8) {
      const TensorId r = c.b.result(t, {rows, out}, "scaled_mm");
      return finish(emit1(c.b, "_scaled_mm", op, r, {}, a, w, row_scales, scales));
    }
    const TensorId wide = c.b.result(DType::int32, {rows, out}, "int8 products");
    Value products = emit1(c.b, "int8_linear_matmul", op, wide, {}, a, w);
    const TensorId r = c.b.result(t, {rows, out}, "int8_mm_dequant");
    const Bytes n = size_of(Elements(checked_mul(rows, out)), t);
    return finish(emit1(c.b, "int8_mm_dequant", MemoryOp{.read = data_bytes(products), .written = n, .dtype = t}, r, {},
                        products, row_scales, scales));
  }
  FourBit w = four_bit(c, weight, q);
  // Under autocast the module itself computes in the lower type and casts back (bitsandbytes/nn/modules.py,
  // Linear4bit.forward).
  if (c.b.autocast.enabled) x = to(std::move(x), c.b.autocast.lower);
  const Plan& p = c.plan;
  // Kernels for 4-bit checkpoints of other kinds multiply a single row as it is stored.
  const bool few_rows = storage == DType::nf4
                            ? rows <= rows_of_4bit_kernel(out, in, x.dtype(), p.compute_capability, p.multiprocessors)
                            : storage == DType::int4 && rows == 1 && !needs_grad(x);
  Value y = matmul_4bit(std::move(x), std::move(w), std::move(bias), few_rows);
  return to(std::move(y), t);
}

}  // namespace vlmest
