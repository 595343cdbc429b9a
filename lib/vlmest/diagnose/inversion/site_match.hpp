// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/inversion/planned_allocations.hpp>
#include <vlmest/diagnose/inversion/tensor_kinds.hpp>

namespace vlmest::diagnose {

namespace site_match {

/// What speaks for an allocation, what says nothing, and what speaks against it. A stack is read by names, so that it
/// can be misread: nothing is ruled out by it alone.
inline constexpr double yes = 1, open = 0.5, no = 0.08;

constexpr bool one_of(std::string_view word, std::span<const std::string_view> words) {
  for (const std::string_view w : words)
    if (word == w) return true;
  return false;
}
constexpr bool has_any(std::string_view text, std::span<const std::string_view> words) {
  for (const std::string_view w : words)
    if (text.find(w) != std::string_view::npos) return true;
  return false;
}

inline bool in_vision(const Graph& g, const PlannedAllocation& a) {
  const ScopeId s = scope_of(g, a.tensor);
  const Part part = g.scopes[static_cast<std::size_t>(s)].part;
  return part == Part::vision || part == Part::projector;
}

/// The innermost name of the module that runs.
inline std::string_view module_of(const Graph& g, const PlannedAllocation& a) {
  const ScopeId s = a.node == none ? scope_of(g, a.tensor) : g.node(a.node).scope;
  return g.scopes[static_cast<std::size_t>(s)].name;
}
inline std::string_view op_of(const Graph& g, const PlannedAllocation& a) {
  return a.node == none ? std::string_view() : std::string_view(g.node(a.node).name);
}
inline bool is_product(const Graph& g, const PlannedAllocation& a) {
  return a.node != none && (std::holds_alternative<Matmul>(g.op(g.node(a.node))) ||
                            std::holds_alternative<StoredMatmul>(g.op(g.node(a.node))) ||
                            std::holds_alternative<GroupedMatmul>(g.op(g.node(a.node))));
}

inline constexpr std::array<std::string_view, 8> mlp_names{"mlp",    "fc",  "ffn", "feed_forward",
                                                           "expert", "act", "up_", "gate"};
inline constexpr std::array<std::string_view, 3> norm_names{"norm", "ln_", "rms"};
inline constexpr std::array<std::string_view, 2> attention_names{"attn", "attention"};

bool inside(const Graph& g, const PlannedAllocation& a, std::span<const std::string_view> words);

}  // namespace site_match

/// How well an allocation agrees with the phase that a stack tells: 1 yes, less where it says nothing or speaks against
/// it.
double agrees(RunPhase phase, const Graph& g, const PlannedAllocation& a);

/// The best that an allocation can do.
constexpr double agrees_at_most(RunPhase p) {
  return p == RunPhase::unknown || p == RunPhase::module_gather ? site_match::open : site_match::yes;
}
constexpr double agrees_at_most(AllocationSite s) {
  return s == AllocationSite::unknown || s == AllocationSite::module_gather ? site_match::open : site_match::yes;
}

/// The same for the kind of tensor that the innermost frames were making.
double agrees(AllocationSite site, const Graph& g, const TensorKinds& kinds, const PlannedAllocation& a);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/site_match.hpp>
#endif
