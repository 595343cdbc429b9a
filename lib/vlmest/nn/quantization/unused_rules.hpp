// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>

/// What a checkpoint's section says of modules that the model does not have: it means something else there, and changes
/// nothing here.
namespace vlmest {

/// The entries under one key that name no module, in a line; longer lists are cut.
inline std::string unused_line(const std::string& where, const std::vector<std::string>& entries,
                               const std::string& type) {
  constexpr std::size_t shown = 4;
  std::string all;
  for (std::size_t i = 0; i < std::min(shown, entries.size()); ++i)
    all += (i == 0 ? "'" : ", '") + entries[i].substr(0, 64) + "'";
  if (entries.size() > shown) all += " and " + std::to_string(entries.size() - shown) + " more";
  const bool one = entries.size() == 1;
  return where + ": " + all + (one ? " names" : " name") + " no module of " + type + " and " +
         (one ? "changes" : "change") + " nothing here";
}

/// Adds the modules of groups that are none of the model's, nor in one of its experts, under their keys.
inline void add_unnamed_modules(std::map<std::string, std::vector<std::string>>& under, const Quantization& q,
                                const Graph& g) {
  std::set<std::string> known;
  const auto no_module = [&](const std::string& module) {
    const std::size_t experts = module.find(".experts.");
    return !known.contains(experts == std::string::npos ? module : module.substr(0, experts + 8));
  };
  for (const StorageGroup& group : q.groups) {
    if (group.modules.empty()) continue;
    if (known.empty())
      for (ScopeId s = 0; s < static_cast<ScopeId>(g.scopes.size()); ++s)
        for (std::string& name : module_names(g, s)) known.insert(std::move(name));
    for (const std::string& module : group.modules)
      if (no_module(module)) under[group.where].push_back(module);
  }
}

/// A line for each key with entries that name no module, and one if no weight at all is stored so. Empty where the
/// plan's type stands for the section.
inline std::vector<std::string> unused_rules(const Vlm& vlm, const Plan& plan) {
  Builder b;
  const Quantization* q = quantization_of(vlm, plan, traits_of(plan.runtime), b.gpu);
  if (!q) return {};
  Context c{b, plan, stack_of(plan)};
  c.loads = true;
  declare_parameters(c, vlm);
  const Graph& g = b.graph;

  std::vector<const ModuleRule*> left;
  const auto ask = [&](const std::vector<ModuleRule>& rules) {
    for (const ModuleRule& r : rules) left.push_back(&r);
  };
  ask(q->skipped);
  ask(q->only);
  for (const StorageGroup& s : q->groups) ask(s.targets);
  for (ScopeId s = 0; !left.empty() && s < static_cast<ScopeId>(g.scopes.size()); ++s) {
    const std::vector<std::string> names = module_names(g, s);
    std::erase_if(left, [&](const ModuleRule* r) { return names_any(*r, names); });
  }
  std::map<std::string, std::vector<std::string>> under;
  add_unnamed_modules(under, *q, g);
  for (const ModuleRule* r : left) under[r->where()].push_back(r->text());
  std::vector<std::string> lines;
  for (const auto& [where, entries] : under) lines.push_back(unused_line(where, entries, vlm.type));
  const bool stores = std::any_of(g.tensors.begin(), g.tensors.end(), [](const Tensor& t) { return t.of != none; });
  if (!stores && (q->linears || q->experts))
    lines.push_back("quantization_config: " + q->summary + " is for no module of " + vlm.type +
                    ": every weight is as wide as without it");
  return lines;
}

}  // namespace vlmest
