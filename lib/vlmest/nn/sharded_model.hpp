// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sharding.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest {

/// Runs what builds a model whose layers may be divided. A view that a rank's heads do not fit is what transformers
/// stops with where they are divided unevenly.
template <class Build>
void build_divided(const std::optional<Sharding>& sharding, Build&& build) {
  if (!sharding) return build();
  try {
    build();
  } catch (const Error& e) {
    if (e.where != "graph") throw;
    throw Error("layout.mesh",
                std::to_string(sharding->ranks) + " GPUs do not divide the heads of this model: " + e.what_happened,
                "choose a number of GPUs that divides its key and value heads");
  }
}

/// How a run divides the model's layers; nothing where it does not. Throws Error for what transformers has no
/// plan for, what it does not run, and what is not modelled.
inline std::optional<Sharding> sharding_of(const Context& c, const Vlm& vlm) {
  const Plan& plan = c.plan;
  const LayerShards& s = plan.shards;
  if (s.ranks <= 1) return std::nullopt;
  const std::string type = vlm.text.type.empty() ? vlm.type : vlm.text.type;
  const std::string what = s.experts ? "expert" : "tensor";
  const auto refuse = [](const std::string& why, const std::string& hint) { throw Error("layout.mesh", why, hint); };
  if (!c.stack().divides_layers)
    refuse("how this runtime divides layers is not modelled",
           "use plan.runtime=" + std::string(name(first_with(&StackTraits::divides_layers))));
  for (const std::string_view t : shard_rules::not_modelled)
    if (t == type) refuse(what + " parallelism of " + type + " is not modelled", "leave it out, or give dp=N");
  const ShardPlans* plans = vlm.text.remote_code ? nullptr : shard_plans(type);
  if (!plans || !any_rules(s.experts ? plans->expert : plans->tensor))
    refuse("transformers 5.17 has no " + what + "-parallel plan for " + (type.empty() ? "this model" : type),
           s.experts ? "experts are divided in models that have some: qwen2_moe, qwen3_moe, qwen3_vl_moe"
                     : "leave it out, or give dp=N");
  if (s.experts && type == "qwen3_vl_moe_text")  // conversion_mapping.py: its checkpoint has the experts transposed
    refuse(
        "transformers 5.17 does not load the experts of this model in parts: its shapes do not match the checkpoint's",
        "give tp=N, which leaves experts whole");
  if (vlm.quantization || plan.weights)
    refuse(what + " parallelism of weights that are stored in fewer bits is not modelled", "estimate it in bf16");
  if (plan.lora.rank > 0)
    refuse(what + " parallelism of a model with adapters is not modelled", "leave plan.lora.rank out, or give dp=N");
  Sharding r{.ranks = s.ranks, .rules = s.experts ? plans->expert : plans->tensor};
  if (s.experts) return r;
  // configuration_utils.py, PretrainedConfig.__init__: the plan of a config that ties gets its embeddings. The class of
  // a language model alone divides the head that they are tied to; that of a composite multiplies by them as they are.
  std::size_t next = 0;
  while (!r.rules[next].empty()) ++next;
  if (vlm.text.causal_lm) r.rules.at(next++) = shard_rules::head;
  if (vlm.text.tied && !vlm.text.causal_lm)
    refuse("transformers 5.17 does not run this model on several ranks: its output head shares the divided embeddings",
           "leave it out, or give dp=N");
  if (vlm.text.tied) r.rules.at(next++) = shard_rules::tied;
  return r;
}

}  // namespace vlmest
