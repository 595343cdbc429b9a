// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include <vlmest/diagnose/advise/action/actions.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {

namespace action {

VLMEST_INLINE std::optional<Tried> choose(const std::vector<Settings>& options, const Subject& s, Estimator& estimator,
                                          bool levels_off) {
  if (options.empty()) return std::nullopt;
  std::vector<std::optional<std::optional<Tried>>> tried(options.size());
  const auto at = [&](std::size_t i) -> const std::optional<Tried>& {
    if (!tried[i]) tried[i] = attempt(options[i], s.device, s.mode, estimator);
    return *tried[i];
  };
  const auto fits = [&](std::size_t i) { return at(i) && at(i)->outcome.fits; };
  const std::size_t last = options.size() - 1;
  std::size_t chosen = options.size() / 2;
  // The last one first: where it does not fit, none does.
  if (last > 0 && !s.fits) chosen = fits(last) ? first_enough(last, fits) : last;
  const std::optional<Tried> found = at(chosen);
  if (!levels_off || !found || (found->outcome.fits && !s.fits)) return found;
  // Less than a thousandth is the allocator's rounding.
  const Bytes enough = found->outcome.peak + Bytes(found->outcome.peak.value() / 1000);
  return at(first_enough(chosen, [&](std::size_t i) { return at(i) && at(i)->outcome.peak <= enough; }));
}

}  // namespace action

VLMEST_INLINE std::vector<Action> actions(const Settings& now, const Device& device, Mode mode, Estimator& estimator) {
  const allocator::AllocatorConfig settings = estimator.allocator;
  const bool details = estimator.details;
  const Outcome before = evaluate(now, device, mode, estimator);
  Subject s{.now = now, .device = device, .mode = mode, .fits = before.fits};
  s.vision = action::vision_path(mode == Mode::training ? estimator.training_graph() : estimator.graph());
  std::vector<Action> r;
  for (const ActionEntry& e : catalogue::rows) {
    if (!e.options) continue;
    const std::vector<Settings> options = e.options(s);
    const auto tried = action::choose(options, s, estimator, e.levels_off);
    if (!tried) continue;
    const Outcome& after = tried->outcome;
    const Bytes saves = e.of_reserved ? before.reserved - after.reserved : before.peak - after.peak;
    // Less than a thousandth of the peak is the allocator's rounding.
    const Bytes least = (before.fits || !after.fits) ? Bytes(before.peak.value() / 1000) : Bytes{};
    const bool faster = e.for_time && after.fits && after.per_sample().value * same_time < before.per_sample().value;
    if (saves <= least && !faster) continue;
    r.push_back({.id = id_of(e),
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
  const auto batch = [](const Action& a) {
    return a.id == action_id("smaller-micro-batch") || a.id == action_id("smaller-batch");
  };
  sort_stably(r, [&](const Action& a, const Action& b) { return batch(a) != batch(b) ? batch(b) : rank(a) < rank(b); });
  estimator.allocator = settings;
  estimator.details = details;
  return r;
}

}  // namespace vlmest::diagnose
