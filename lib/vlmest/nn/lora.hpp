// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/unit/nearest.hpp>

/// Low-rank adapters (Hu et al., arXiv:2106.09685, section 4.1) on linear modules as peft 0.21 puts them there
/// (peft/tuners/lora/layer.py): y = W x + s B (A x) with A[r, in] and B[out, r].
namespace vlmest {

/// The adapter of one linear. Its weights exist once declare_adapters has run.
struct Adapter {
  std::int64_t in = 0, out = 0;
  ScopeId base = 0, a_scope = 0, b_scope = 0;  ///< base_layer, lora_A.default, lora_B.default
  TensorId a = none, b = none;
};

/// The adapters of a model under construction, in the order of its modules.
struct Adapters {
  std::vector<Adapter> list;
  std::set<std::string> modules;  ///< names of the linears that could have one
  std::set<std::string> found;    ///< targets that name a linear
};

/// peft's word for every linear but the output head.
inline constexpr std::string_view all_linear = "all-linear";

/// A module's own name: "q_proj", "mlp.0".
inline std::string module_name(const Graph& g, ScopeId s) {
  const Scope& e = g.scopes[static_cast<std::size_t>(s)];
  return e.index == none ? e.name : std::string(e.name) + "." + std::to_string(e.index);
}

/// Whether a target means the module: its name, or the end of its path after a dot (peft/tuners/tuners_utils.py,
/// check_target_module_exists).
inline bool is_target(const Graph& g, ScopeId s, std::string_view target) {
  const Scope& e = g.scopes[static_cast<std::size_t>(s)];
  if (target == all_linear) return s != g.head;
  if (e.index == none && target == e.name) return true;
  if (e.index == none && target.find('.') == std::string_view::npos) return false;
  const std::string full = path(g, s);
  return full.ends_with(target) && (full.size() == target.size() || full[full.size() - target.size() - 1] == '.');
}

/// Notes an adapter for the linear module of the current scope where the plan wants one: on the language model's
/// modules, with Lora::vision on the vision tower's too. Returns its place in the list, or none.
inline std::int32_t adapter_of(Context& c, std::int64_t in, std::int64_t out) {
  if (!c.adapters) return none;
  const Graph& g = c.b.graph;
  const ScopeId here = c.b.scope();
  const Part part = g.scopes[static_cast<std::size_t>(here)].part;
  if (part != Part::language && !(c.plan.lora.vision && part == Part::vision)) return none;
  c.adapters->modules.insert(module_name(g, here));
  // T5 calls q_proj q, and so on: targets that nobody asked for mean those too.
  const bool unasked = c.plan.lora.targets == Lora{}.targets;
  const std::string projection = module_name(g, here) + "_proj";
  bool wanted = false;
  for (const auto& t : c.plan.lora.targets)
    if (is_target(g, here, t) || (unasked && t == projection)) {
      wanted = true;
      c.adapters->found.insert(t);
    }
  if (!wanted) return none;
  Adapter a{.in = in, .out = out};
  a.base = c.b.child("base_layer");
  a.a_scope = c.b.child("lora_A.default");
  a.b_scope = c.b.child("lora_B.default");
  c.adapters->list.push_back(a);
  return static_cast<std::int32_t>(c.adapters->list.size() - 1);
}

/// Where a linear's own weights lie: below it, where it has an adapter.
inline ScopeId base_scope(const Context& c, std::int32_t adapter, ScopeId own) {
  return adapter == none ? own : c.adapters->list[static_cast<std::size_t>(adapter)].base;
}

/// Throws Error where a target names no linear module. Of the default targets one is enough: families name their output
/// projection in several ways.
inline void check_targets(const Lora& lora, const Adapters& adapters) {
  const bool unasked = lora.targets == Lora{}.targets && !adapters.found.empty();
  for (const auto& t : lora.targets) {
    if (unasked || adapters.found.contains(t)) continue;
    const std::vector<std::string_view> known(adapters.modules.begin(), adapters.modules.end());
    std::string hint;
    if (const auto meant = nearest(t, known); !meant.empty()) hint = "did you mean " + std::string(meant) + "? ";
    hint += "linear modules are:";
    for (const auto& m : known) hint += " " + std::string(m);
    throw Error("plan.lora.targets", "no linear module is called " + t, hint);
  }
}

/// Declares the adapters' weights: after all of the model's own, as peft.get_peft_model adds them to a model that is
/// there, in fp32 where the model is in 16 bits (autocast_adapter_dtype), which gathering in another type undoes.
/// Throws Error as check_targets does.
inline void declare_adapters(Context& c) {
  if (!c.adapters) return;
  check_targets(c.plan.lora, *c.adapters);
  const std::int64_t rank = c.plan.lora.rank;
  const auto weight = [&](ScopeId scope, const Shape& shape) {
    InScope in(c.b, scope);
    return c.b.persistent("weight", Role::weight, c.plan.param_dtype.value_or(DType::fp32), shape);
  };
  c.b.first_adapter = static_cast<TensorId>(c.b.graph.tensors.size());
  for (Adapter& a : c.adapters->list) {
    a.a = weight(a.a_scope, {rank, a.in});
    a.b = weight(a.b_scope, {a.out, rank});
  }
  c.b.last_adapter = static_cast<TensorId>(c.b.graph.tensors.size());
}

/// Whether a weight belongs to an adapter.
inline bool is_adapter(const Graph& g, const Tensor& t) {
  const std::string_view scope = g.scopes[static_cast<std::size_t>(t.scope)].name;
  return scope == "lora_A.default" || scope == "lora_B.default";
}

}  // namespace vlmest
