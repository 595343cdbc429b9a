// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/linear_function.hpp>
#include <vlmest/nn/quantization/quantization.hpp>

namespace vlmest {

/// What belongs to a weight that is stored in a way of its own. Which of them a method has stands in its header.
struct QuantizedWeight {
  TensorId scales = none;
  TensorId extra = none;  ///< bitsandbytes: the table; others: zero points, or the scale of the whole weight
  TensorId mean = none;   ///< of doubly quantised scales
  TensorId nested_scales = none, nested_table = none;
  const WeightStorage* how = nullptr;  ///< none: Plan::weights says it
  std::int64_t in = 0, out = 0;        ///< of the layer
};

/// A weight and what belongs to it.
struct StoredWeight {
  TensorId weight = none;
  QuantizedWeight quantized;
};

/// What the tensors of one weight are called. Experts have several in one module, each with its own names.
struct StoredNames {
  const char* weight;
  const char* scales;
  const char* zeros = "";
  const char* index = "g_idx";
  const char* whole = "weight_global_scale";  ///< the scale of the whole weight
  const char* input = "input_scale";          ///< a static one of the layer's input
};

/// A layer's matrix, or that of each of `experts` experts in one tensor.
struct StoredSize {
  std::int64_t in = 0, out = 0;
  std::int64_t experts = 0;
  bool inputs_first = false;  ///< how experts lie where they are not stored in a way of their own: [in, out]

  Shape wide() const { return inputs_first ? of(in, out) : of(out, in); }
  Shape of(std::int64_t rows, std::int64_t columns) const {
    return experts > 0 ? Shape{experts, rows, columns} : Shape{rows, columns};
  }
  Shape of(std::int64_t n) const { return experts > 0 ? Shape{experts, n} : Shape{n}; }
  std::int64_t elements() const { return checked_mul(checked_mul(in, out), experts > 0 ? experts : 1); }
};

constexpr std::int64_t blocks(std::int64_t n, std::int64_t of) { return n / of + (n % of != 0); }
/// Groups of inputs that share a scale; `group` 0: all.
constexpr std::int64_t groups(std::int64_t in, std::int64_t group) { return group == 0 ? 1 : blocks(in, group); }

/// Throws Error naming the current module where `n` is no multiple of `of`.
inline void check_multiple(Context& c, std::int64_t n, std::int64_t of, const char* what) {
  if (n % of == 0) return;
  throw Error("quantization_config",
              path(c.b.graph, c.b.scope()) + " cannot be stored so: its " + std::to_string(n) + " " + what +
                  " are no multiple of " + std::to_string(of),
              "name it among the modules that are not converted");
}

/// The current scope's packed weight, which stands for all of the layer's.
inline TensorId packed_weight(Context& c, const char* name, DType t, const Shape& shape, const StoredSize& size) {
  const TensorId w = c.b.persistent(name, Role::weight, t, shape);
  c.b.graph.tensors[static_cast<std::size_t>(w)].stands_for = Elements(size.elements());
  return w;
}
/// A tensor that belongs to a weight.
inline TensorId beside(Context& c, TensorId weight, const char* name, const Shape& shape, DType t) {
  const TensorId s = buffer(c, name, shape, t);
  c.b.graph.tensors[static_cast<std::size_t>(s)].of = weight;
  return s;
}
/// 16-bit scales: of the activations' type, or fp16 where these are wider.
inline DType half_scales(const Context& c) { return is_half(c.dtype()) ? c.dtype() : DType::fp16; }

/// Bytes of a weight and of what the product reads with it.
inline Bytes stored_bytes(const Value& weight, const QuantizedWeight& q) {
  Bytes r = eager::data_bytes(weight);
  const Graph& g = weight.builder().graph;
  for (const TensorId t : {q.scales, q.extra, q.nested_scales})
    if (t != none) r += size_of(numel(g.tensor(t).shape), g.tensor(t).dtype);
  return r;
}

/// x[..., in] times a weight that one kernel reads as it is stored, with a bias that the kernel adds.
inline Value stored_matmul(const char* name, Value arg, const Value& weight, const QuantizedWeight& q, Value bias,
                           std::initializer_list<Bytes> scratch = {}) {
  using namespace eager;
  Value x = contiguous(std::move(arg));
  Builder& b = x.builder();
  Shape shape = x.shape();
  shape[shape.rank() - 1] = q.out;
  StoredMatmul op{.m = numel(x.shape()).value() / q.in,
                  .n = q.out,
                  .k = q.in,
                  .stored = stored_bytes(weight, q),
                  .dtype = x.dtype()};
  for (const Bytes s : scratch) op.workspace += s;
  const TensorId r = b.result(x.dtype(), shape, name);
  Value stored = weight, scales = q.scales == none ? Value() : Value(b, q.scales);
  if (!scales)
    return bias ? emit1(b, name, op, r, scratch, x, stored, bias) : emit1(b, name, op, r, scratch, x, stored);
  if (!bias) return emit1(b, name, op, r, scratch, x, stored, scales);
  return emit1(b, name, op, r, scratch, x, stored, scales, bias);
}

/// The weight[out, in] as a temporary of type t.
inline Value dequantized_weight(Context& c, const Value& weight, const QuantizedWeight& q, DType t) {
  using namespace eager;
  const Shape shape{q.out, q.in};
  const TensorId r = c.b.result(t, shape, "dequantized weight");
  const MemoryOp op{.read = stored_bytes(weight, q), .written = size_of(numel(shape), t), .dtype = t};
  Value in = weight, by = q.scales == none ? Value() : Value(c.b, q.scales);
  return by ? emit1(c.b, "dequantize", op, r, {}, in, by) : emit1(c.b, "dequantize", op, r, {}, in);
}
inline Value dequantized_matmul(Context& c, Value x, const Value& weight, const QuantizedWeight& q, Value bias) {
  Value wide = dequantized_weight(c, weight, q, x.dtype());
  return linear(std::move(x), std::move(wide), std::move(bias), true);
}

}  // namespace vlmest
