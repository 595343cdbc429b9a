// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// A linear weight stored in fewer bits than the activations, as the libraries behind transformers keep it.
/// - nf4: bitsandbytes, blocks of 64 with an fp32 scale each and a table of 16 values
///   (bitsandbytes/functional.py, quantize_4bit).
/// - int4: groups of 128 inputs with a 16-bit scale and a 4-bit zero point (AWQ and GPTQ checkpoints).
/// - int8: LLM.int8(), one fp32 scale for each output (bitsandbytes/autograd/_functions.py, MatMul8bitLt).
/// - fp8: blocks of 128 x 128 with an fp32 scale (transformers integrations/finegrained_fp8.py).
struct QuantizedWeight {
  TensorId scales = none;
  TensorId extra = none;  ///< nf4: the table; int4: zero points
};

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

/// x[..., in] times a stored weight: 4-bit weights are dequantised to a temporary of the activations' type (a single
/// row multiplies them directly), 8-bit ones multiply quantised rows of x, other types are cast.
inline Value quantized_linear(Context& c, Value x, const Value& weight, const QuantizedWeight& q) {
  using namespace eager;
  const DType t = x.dtype(), storage = weight.dtype();
  const std::int64_t out = weight.size(0), in = weight.size(1), rows = numel(x.shape()).value() / in;
  const Bytes weight_bytes = data_bytes(weight) + (q.scales == none ? Bytes{} : data_bytes(c.b.graph.tensor(q.scales)));
  Value flat = reshape(std::move(x), {rows, in});
  Value scales = q.scales == none ? Value() : Value(c.b, q.scales);
  if (storage == DType::int8 || storage == DType::fp8) {
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
      return emit1(c.b, "_scaled_mm", op, r, {}, a, w, row_scales, scales);
    }
    const TensorId wide = c.b.result(DType::int32, {rows, out}, "int8 products");
    Value products = emit1(c.b, "int8_linear_matmul", op, wide, {}, a, w);
    const TensorId r = c.b.result(t, {rows, out}, "int8_mm_dequant");
    const Bytes n = size_of(Elements(checked_mul(rows, out)), t);
    return emit1(c.b, "int8_mm_dequant", MemoryOp{.read = data_bytes(products), .written = n, .dtype = t}, r, {},
                 products, row_scales, scales);
  }
  if (rows == 1 && (storage == DType::nf4 || storage == DType::int4)) {
    const TensorId r = c.b.result(t, {rows, out}, "gemv_4bit");
    const MemoryOp op{.read = weight_bytes + data_bytes(flat), .written = size_of(Elements(out), t), .dtype = t};
    return emit1(c.b, "gemv_4bit", op, r, {}, flat, scales);
  }
  const TensorId r = c.b.result(t, {out, in}, "dequantized weight");
  const std::array<TensorId, 2> from{weight.id(), q.scales};
  const std::array<TensorId, 1> made{r};
  c.b.emit("dequantize",
           MemoryOp{.read = weight_bytes, .written = size_of(Elements(checked_mul(out, in)), t), .dtype = t}, from,
           made);
  return mm(flat, transpose(Value(c.b, r), 0, 1));
}

}  // namespace vlmest
