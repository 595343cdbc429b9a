// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantization/awq.hpp>
#include <vlmest/nn/quantization/bitsandbytes.hpp>
#include <vlmest/nn/quantization/fp4.hpp>
#include <vlmest/nn/quantization/fp8.hpp>
#include <vlmest/nn/quantization/gptq.hpp>
#include <vlmest/nn/quantization/integer.hpp>
#include <vlmest/nn/quantization/rounded_inputs.hpp>

/// A linear weight in fewer bits than the activations: as the checkpoint's quantization_config says (nn/quantization),
/// or all of the language model's, but for its head, in the type that Plan::weights names:
/// - nf4: bitsandbytes; below adapters it is doubly quantised, as QLoRA sets it.
/// - int4: groups of 128 inputs with a 16-bit scale and a 4-bit zero point (AWQ and GPTQ checkpoints).
/// - int8: LLM.int8(). fp8: blocks of 128 x 128 with an fp32 scale.
namespace vlmest {

/// Whether nf4 scales are quantised too: bnb_4bit_use_double_quant.
inline bool quantizes_twice(const Plan& p) { return p.weights == DType::nf4 && p.lora.rank > 0; }

/// Whether the current scope's linear is stored in the plan's weight type.
inline bool quantizes(const Context& c, StoredModule kind) {
  if (!c.plan.weights || *c.plan.weights == c.dtype()) return false;
  const Scope& here = c.b.graph.scopes[static_cast<std::size_t>(c.b.scope())];
  return here.part == Part::language && kind != StoredModule::head;
}

/// Whether this run computes with a weight that it unpacked when its first forward began; what was loaded is packed.
inline bool unpacks(const Context& c, const WeightStorage& how) {
  if (!c.quantization || !c.stack().transformers_quantizers || !c.quantization->unpacked_by_transformers || c.loads)
    return false;
  return !(std::holds_alternative<Fp8Weight>(how) && row_wise(c));
}

/// How the checkpoint stores the weight of the current scope; none: as the others.
inline const WeightStorage* checkpoint_storage(const Context& c, StoredModule kind) {
  return c.quantization ? storage_of(*c.quantization, c.b.graph, c.b.scope(), kind) : nullptr;
}

/// The current scope's weight as the checkpoint stores it.
inline StoredWeight declare_as(Context& c, const WeightStorage& how, const StoredSize& n,
                               const StoredNames* names = nullptr) {
  StoredWeight r = std::visit([&](const auto& w) { return declare(c, w, n, names); }, how);
  r.quantized.how = &how;
  r.quantized.in = n.in;
  r.quantized.out = n.out;
  return r;
}

/// What stands for a type of the plan that a checkpoint may have too; none: int4, and types without scales.
inline const WeightStorage* plan_storage(const Plan& p) {
  // Linear4bit computes in the model's type.
  static constexpr WeightStorage once = Bnb4Weight{.compute = DType::fp16},
                                 twice = Bnb4Weight{.twice = true, .compute = DType::fp16}, int8 = Bnb8Weight{},
                                 fp8 = Fp8Weight{};
  switch (*p.weights) {
    case DType::nf4: return quantizes_twice(p) ? &twice : &once;
    case DType::int8: return &int8;
    case DType::fp8: return &fp8;
    default: return nullptr;
  }
}

/// The current scope's weight in a storage type of the plan.
inline StoredWeight declare_in(Context& c, DType storage, const StoredSize& n) {
  if (const WeightStorage* how = plan_storage(c.plan)) return declare_as(c, *how, n);
  StoredWeight r;
  r.weight = c.b.persistent("weight", Role::weight, storage, {n.out, n.in});
  if (storage == DType::int4) {
    r.quantized.scales = beside(c, r.weight, "scales", {blocks(n.in, 128), n.out}, half_scales(c));
    r.quantized.extra = beside(c, r.weight, "qzeros", {blocks(n.in, 128), n.out}, DType::int4);
  }
  return r;  // a wider or equal floating type has no scales
}

/// A wide weight, and what its packed form left beside it.
inline TensorId declare_unpacked(Context& c, const WeightStorage& how, const StoredSize& n) {
  const TensorId weight = parameter(c, "weight", {n.out, n.in});
  std::visit(
      [&](const auto& w) {
        if constexpr (requires { leftovers(c, w, weight, n); }) leftovers(c, w, weight, n);
      },
      how);
  return weight;
}

/// x[..., in] times a stored weight, plus a bias where there is one. Of the plan's types int4 is dequantised to a
/// temporary of the activations' type, or multiplied as it is where x is a single row, wider types are cast. What is
/// not stored so (embeddings, norms, the head) has the plan's type; peft's prepare_model_for_kbit_training casts it to
/// fp32: that is Plan::amp, or fp32 without autocast.
inline Value quantized_linear(Context& c, Value x, const Value& weight, const QuantizedWeight& q, Value bias) {
  using namespace eager;
  if (q.how)
    return std::visit([&](const auto& w) { return multiply(c, w, std::move(x), weight, q, std::move(bias)); }, *q.how);
  const DType t = x.dtype();
  const std::int64_t rows = numel(x.shape()).value() / weight.size(1);
  if (c.b.autocast.enabled) x = to(std::move(x), c.b.autocast.lower);
  const bool few_rows = weight.dtype() == DType::int4 && rows == 1 && !needs_grad(x);
  return to(matmul_4bit(std::move(x), four_bit(c, weight, q), std::move(bias), few_rows), t);
}

}  // namespace vlmest
