// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include <vlmest/diagnose/action/action.hpp>
#include <vlmest/diagnose/action/actions_inference.hpp>
#include <vlmest/diagnose/action/actions_inputs.hpp>
#include <vlmest/diagnose/action/actions_process.hpp>
#include <vlmest/diagnose/action/actions_training.hpp>
#include <vlmest/diagnose/action/outcome.hpp>

namespace vlmest::diagnose {

/// The rows of all tables.
inline std::vector<ActionEntry> action_entries() {
  std::vector<ActionEntry> r;
  for (const auto& e : training_actions) r.push_back(e);
  for (const auto& e : inference_actions) r.push_back(e);
  for (const auto& e : input_actions) r.push_back(e);
  for (const auto& e : process_actions) r.push_back(e);
  return r;
}

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
inline std::optional<Tried> choose(const std::vector<Settings>& options, const Subject& s, Estimator& estimator,
                                   bool levels_off = false) {
  if (options.empty()) return std::nullopt;
  const auto at = [&](std::size_t i) { return attempt(options[i], s.device, s.mode, estimator); };
  std::size_t chosen = options.size() / 2;
  if (options.size() > 1 && !s.fits)
    chosen = first_enough(options.size() - 1, [&](std::size_t i) {
      const auto t = at(i);
      return t && t->outcome.fits;
    });
  const auto found = at(chosen);
  if (!levels_off || !found || (found->outcome.fits && !s.fits)) return found;
  // Less than a thousandth is the allocator's rounding.
  const Bytes enough = found->outcome.peak + Bytes(found->outcome.peak.value() / 1000);
  chosen = first_enough(chosen, [&](std::size_t i) {
    const auto t = at(i);
    return t && t->outcome.peak <= enough;
  });
  return at(chosen);
}

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
inline std::vector<Action> actions(const Settings& now, const Device& device, Mode mode, Estimator& estimator) {
  const allocator::AllocatorConfig settings = estimator.allocator;
  const bool details = estimator.details;
  const Outcome before = evaluate(now, device, mode, estimator);
  Subject s{.now = now, .device = device, .mode = mode, .fits = before.fits};
  s.vision = action::vision_path(mode == Mode::training ? estimator.training_graph() : estimator.graph());
  std::vector<Action> r;
  for (const ActionEntry& e : action_entries()) {
    const std::vector<Settings> options = e.options(s);
    const auto tried = action::choose(options, s, estimator, e.levels_off);
    if (!tried) continue;
    const Outcome& after = tried->outcome;
    const Bytes saves = e.of_reserved ? before.reserved - after.reserved : before.peak - after.peak;
    // Less than a thousandth of the peak is the allocator's rounding.
    const Bytes least = (before.fits || !after.fits) ? Bytes(before.peak.value() / 1000) : Bytes{};
    const bool faster = e.for_time && after.fits && after.per_sample().value * same_time < before.per_sample().value;
    if (saves <= least && !faster) continue;
    r.push_back({.id = std::string(e.id),
                 .title = std::string(e.title),
                 .saves = std::max(saves, Bytes{}),
                 .of_reserved = e.of_reserved,
                 .time_cost_pct = action::time_cost_pct(before, after),
                 .peak_after = after.peak,
                 .reserved_after = after.reserved,
                 .fits = after.fits,
                 .how = e.how(s, *tried->settings),
                 .loses = e.loses,
                 .after = *tried->settings});
  }
  const auto rank = [](const Action& a) {
    return std::tuple(a.loses == Loses::order, !a.fits, a.loses == Loses::quality, a.time_cost_pct, -a.saves.value());
  };
  // Batches come behind everything.
  const auto batch = [](const Action& a) { return a.id == "smaller-micro-batch" || a.id == "smaller-batch"; };
  std::stable_sort(r.begin(), r.end(), [&](const Action& a, const Action& b) {
    return batch(a) != batch(b) ? batch(b) : rank(a) < rank(b);
  });
  estimator.allocator = settings;
  estimator.details = details;
  return r;
}

inline std::vector<Action> actions(const Vlm& vlm, const Plan& plan, const Device& device, Mode mode,
                                   Estimator& estimator, const allocator::AllocatorConfig& allocator = {},
                                   int gpus = 1) {
  return actions(Settings{vlm, plan, allocator, {.gpus = gpus}}, device, mode, estimator);
}

}  // namespace vlmest::diagnose
