// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/lora.hpp>

namespace vlmest {

/// Whether a component is trained; what belongs to the model as a whole goes with the projector.
constexpr bool trains(const Trainable& t, Part p) {
  return p == Part::vision ? t.vision : p == Part::language ? t.language : t.projector;
}
/// Whether a weight is trained: with adapters they alone are.
inline bool trains(const Plan& plan, const Graph& g, const Tensor& t) {
  if (t.role != Role::weight) return false;
  if (plan.lora.rank > 0) return is_adapter(g, t);
  return trains(plan.trainable, g.scopes[static_cast<std::size_t>(t.scope)].part);
}

/// Throws Error for weights in a storage type that no gradient is known through, or that would be trained themselves.
inline void check_stored_weights(const Plan& p) {
  if (!p.weights || *p.weights == p.dtype) return;
  if (*p.weights != DType::nf4)
    throw Error("--weights", "training through " + std::string(name(*p.weights)) + " weights is not known",
                "use nf4, or no --weights");
  if (p.lora.rank == 0 && p.trainable.language)
    throw Error("--weights", "nf4 weights cannot be trained themselves", "add --lora RANK, or --freeze language");
}

}  // namespace vlmest
