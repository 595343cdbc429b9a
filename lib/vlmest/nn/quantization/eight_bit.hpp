// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/quantization/stored.hpp>

/// Products of 8-bit weights with rows of x that are quantised for them.
namespace vlmest {

struct QuantizedRows {
  Value values, scales;
};

/// flat[rows, in] in type t, with an fp32 scale for every `columns` values of a row.
inline QuantizedRows quantize_rows(Context& c, Value flat, DType t, std::int64_t columns) {
  const std::int64_t rows = flat.size(0), in = flat.size(1);
  const Shape groups = columns >= in ? Shape{rows} : Shape{rows, blocks(in, columns)};
  const std::array<TensorId, 1> from{flat.id()};
  const std::array<TensorId, 2> made{c.b.result(t, {rows, in}, "quantized"),
                                     c.b.result(DType::fp32, groups, "row scales")};
  const Bytes narrow = size_of(Elements(checked_mul(rows, in)), t) + size_of(numel(groups), DType::fp32);
  c.b.emit("quantize_rows", MemoryOp{.read = eager::data_bytes(flat), .written = narrow, .dtype = flat.dtype()}, from,
           made);
  return {Value(c.b, made[0]), Value(c.b, made[1])};
}

/// x[..., in] as rows, the product of which `multiply(rows)` gives, in x' shape again and with the bias added.
template <class Multiply>
Value on_rows(Value x, std::int64_t in, std::int64_t out, Value bias, Multiply multiply) {
  using namespace eager;
  Shape shape = x.shape();
  const std::int64_t rows = numel(shape).value() / in;
  shape[shape.rank() - 1] = out;
  Value y = view(multiply(reshape(std::move(x), {rows, in})), shape);
  return bias ? add(std::move(y), std::move(bias)) : y;
}

/// torch._scaled_mm and kernels like it: rows of x in fp8, `columns` values a scale.
inline Value fp8_matmul(Context& c, Value x, const Value& weight, const QuantizedWeight& q, Value bias,
                        std::int64_t columns) {
  using namespace eager;
  const DType t = x.dtype();
  return on_rows(std::move(x), weight.size(1), weight.size(0), std::move(bias), [&](Value flat) {
    const Matmul op{.m = flat.size(0), .n = weight.size(0), .k = weight.size(1), .dtype = DType::fp8};
    QuantizedRows a = quantize_rows(c, std::move(flat), DType::fp8, columns);
    Value w = transpose(weight, 0, 1), scales(c.b, q.scales);
    const TensorId r = c.b.result(t, {op.m, op.n}, "scaled_mm");
    return emit1(c.b, "_scaled_mm", op, r, {}, a.values, w, a.scales, scales);
  });
}

/// LLM.int8() (bitsandbytes/autograd/_functions.py, MatMul8bitLt): int32 products, and their scales in a second kernel.
inline Value int8_matmul(Context& c, Value x, const Value& weight, const QuantizedWeight& q, Value bias) {
  using namespace eager;
  const DType t = x.dtype();
  return on_rows(std::move(x), weight.size(1), weight.size(0), std::move(bias), [&](Value flat) {
    const Matmul op{.m = flat.size(0), .n = weight.size(0), .k = weight.size(1), .dtype = DType::int8};
    QuantizedRows a = quantize_rows(c, std::move(flat), DType::int8, op.k);
    Value w = transpose(weight, 0, 1), scales(c.b, q.scales);
    const TensorId wide = c.b.result(DType::int32, {op.m, op.n}, "int8 products");
    Value products = emit1(c.b, "int8_linear_matmul", op, wide, {}, a.values, w);
    const TensorId r = c.b.result(t, {op.m, op.n}, "int8_mm_dequant");
    const Bytes n = size_of(Elements(checked_mul(op.m, op.n)), t);
    return emit1(c.b, "int8_mm_dequant", MemoryOp{.read = data_bytes(products), .written = n, .dtype = t}, r, {},
                 products, a.scales, scales);
  });
}

}  // namespace vlmest
