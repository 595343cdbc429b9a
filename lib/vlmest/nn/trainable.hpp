// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <variant>

#include <vlmest/nn/lora.hpp>
#include <vlmest/nn/quantization/quantization.hpp>

namespace vlmest {

/// Whether a component is trained; what belongs to the model as a whole goes with the projector.
constexpr bool trains(const Trainable& t, Part p) {
  switch (p) {
    case Part::vision: return t.vision;
    case Part::audio: return t.audio;
    case Part::language: return t.language;
    default: return t.projector;
  }
}
/// Whether a weight is trained: with adapters they alone are.
inline bool trains(const Plan& plan, const Graph& g, const Tensor& t) {
  if (t.role != Role::weight || t.fixed) return false;
  if (plan.lora.rank > 0) return is_adapter(g, t);
  return trains(plan.trainable, g.scopes[static_cast<std::size_t>(t.scope)].part);
}

/// Throws Error for a checkpoint's stored weights that no gradient is known through, or that would be trained
/// themselves. Of transformers' quantizers bitsandbytes' trains below adapters, and its 4-bit form is what
/// nn/quantization/bitsandbytes.hpp has a backward of.
inline void check_trains_through(const Plan& p, const Quantization& q) {
  if (!q.linears && !q.experts) return;  // loaded wide
  const bool known = std::all_of(q.groups.begin(), q.groups.end(), [](const StorageGroup& g) {
    return !g.storage || std::holds_alternative<Bnb4Weight>(*g.storage);
  });
  if (!known)
    throw Error("quantization_config", "training through " + q.method + " weights is not known",
                "give plan.weights=bf16 for a model that is loaded wide, or plan.weights=nf4 with plan.lora.rank=RANK");
  if (p.lora.rank == 0)
    throw Error("quantization_config", "4-bit weights cannot be trained themselves", "add plan.lora.rank=RANK");
}

/// Throws Error for weights in a storage type that no gradient is known through, or that would be trained themselves.
inline void check_stored_weights(const Plan& p, const Quantization* q = nullptr) {
  if (q) check_trains_through(p, *q);
  if (!p.weights || *p.weights == p.dtype) return;
  if (*p.weights != DType::nf4)
    throw Error("plan.weights", "training through " + std::string(name(*p.weights)) + " weights is not known",
                "use nf4, or no plan.weights");
  if (p.lora.rank == 0 && p.trainable.language)
    throw Error("plan.weights", "nf4 weights cannot be trained themselves",
                "add plan.lora.rank=RANK, or plan.trainable.language=false");
}

}  // namespace vlmest
