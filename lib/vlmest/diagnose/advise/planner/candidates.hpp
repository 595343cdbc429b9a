// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <vlmest/diagnose/advise/action/actions.hpp>

namespace vlmest::diagnose {

/// Settings with some actions taken.
struct Candidate {
  Settings settings;
  std::vector<const ActionEntry*> changes;
  std::int64_t first = 0;  ///< where the search for its largest size begins; 0: with what was asked for
  /// The largest loss among the changes.
  Loses loses() const {
    Loses most = Loses::nothing;
    for (const ActionEntry* e : changes) most = std::max(most, e->loses);
    return most;
  }
};

/// The actions of one row, at most three.
struct PlanKnob {
  std::array<ActionId, 3> all{};
  std::size_t count = 0;
  template <class... Names>
  consteval PlanKnob(Names... names) : all{action_id(names)...}, count(sizeof...(names)) {}
  constexpr std::span<const ActionId> ids() const { return std::span(all).first(count); }
};

/// Actions of which a plan takes one or none: what excludes each other stands in one row.
inline constexpr std::array<PlanKnob, 9> plan_knobs{{
    {"attention-sdpa", "attention-flash"},
    {"checkpointing-vision", "checkpointing-selective", "checkpointing-full"},
    {"loss-fused", "loss-chunked"},
    {"optimizer-fused", "optimizer-8bit", "optimizer-adafactor"},
    {"logits-last"},
    {"kv-paged"},
    {"kv-fp8", "kv-int8"},
    {"weights-int8", "weights-nf4"},
    {"zero-1", "zero-2", "zero-3"},
}};

/// The candidate with one action more, or nothing where it does not apply.
std::optional<Candidate> with(const Candidate& c, ActionId id, const Device& device, Mode mode);

/// Every combination of the knobs over these, which come first.
inline std::vector<Candidate> combined(std::vector<Candidate> all, const Device& device, Mode mode) {
  for (const auto& knob : plan_knobs)
    for (std::size_t i = 0, n = all.size(); i < n; ++i)
      for (const ActionId id : knob.ids())
        if (auto c = with(all[i], id, device, mode)) all.push_back(std::move(*c));
  return all;
}

/// Every combination of the knobs, what was asked for first.
inline std::vector<Candidate> candidates(const Settings& asked, const Device& device, Mode mode) {
  return combined({{asked, {}}}, device, mode);
}

/// The same of adapters, over the weights as they are and over weights of 4 bits; none where not everything is to be
/// trained.
std::vector<Candidate> adapter_candidates(const Settings& asked, const Device& device, Mode mode);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/planner/impl/candidates.hpp>
#endif
