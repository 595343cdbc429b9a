// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/advise/action/catalogue.hpp>
#include <vlmest/diagnose/inversion/run/outcome.hpp>

namespace vlmest::diagnose {

namespace action {

/// "model.visual": the module path of the vision tower; empty where there is none.
inline std::string vision_path(const Graph& g) {
  for (std::size_t i = 1; i < g.scopes.size(); ++i)
    if (g.scopes[i].part == Part::vision) return path(g, static_cast<ScopeId>(i));
  return {};
}

/// An option with what it takes; nothing where it cannot be estimated.
struct Tried {
  const Settings* settings;
  Outcome outcome;
};
inline std::optional<Tried> attempt(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
  try {
    return Tried{&s, evaluate(s, device, mode, estimator)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The first of options[0 … last] that is enough, where those behind it are too; the last one where none is.
template <class Enough>
std::size_t first_enough(std::size_t last, Enough&& enough) {
  std::size_t low = 0, high = last;  // the answer lies within
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// The first option that fits, or the last one where none does, or, of an action that levels off, the first that saves
/// as much. A run that fits already takes half of the way.
std::optional<Tried> choose(const std::vector<Settings>& options, const Subject& s, Estimator& estimator,
                            bool levels_off = false);

/// The time of one sequence, against what it was.
inline double time_cost_pct(const Outcome& before, const Outcome& after) {
  const double was = before.per_sample().value;
  return was > 0 ? (after.per_sample().value / was - 1) * 100 : 0;
}

}  // namespace action

/// The actions that save memory where `now` runs on `device`, each estimated with its own change alone. What is in
/// force already, what the model or the device does not have, and what saves nothing (bytes, or, for an action that is
/// meant to, time) is left out. An action with a size (pixels, images, tokens, the micro-batch) takes the largest that
/// fits. Sorted: what then fits, and of that what computes the same before what does not, the least time first; what
/// then does not fit, likewise; and last the actions that lose order. `estimator` works for it: its allocator's
/// settings and `details` are what they were, its graphs are not. Throws Error where `now` itself cannot be estimated.
std::vector<Action> actions(const Settings& now, const Device& device, Mode mode, Estimator& estimator);

inline std::vector<Action> actions(const Vlm& vlm, const Plan& plan, const Device& device, Mode mode,
                                   Estimator& estimator, const allocator::AllocatorConfig& allocator = {},
                                   int gpus = 1) {
  return actions(Settings{vlm, plan, allocator, {.gpus = gpus}}, device, mode, estimator);
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/actions.hpp>
#endif
