// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/planner/candidates.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<Candidate> with(const Candidate& c, ActionId id, const Device& device, Mode mode) {
  const ActionEntry* e = action_entry(id);
  if (!e || !e->options) return std::nullopt;
  const Subject s{.now = c.settings, .device = device, .mode = mode};
  std::vector<Settings> options = e->options(s);
  if (options.empty()) return std::nullopt;
  Candidate r{std::move(options.front()), c.changes};
  r.changes.push_back(e);
  return r;
}

VLMEST_INLINE std::vector<Candidate> adapter_candidates(const Settings& asked, const Device& device, Mode mode) {
  const Trainable& t = asked.plan.trainable;
  if (mode != Mode::training || asked.plan.lora.rank > 0 || !t.vision || !t.projector || !t.language) return {};
  std::vector<Candidate> first;
  for (const ActionId id : {action_id("lora-16"), action_id("qlora")})
    if (auto c = with({asked, {}}, id, device, mode)) first.push_back(std::move(*c));
  return combined(std::move(first), device, mode);
}

}  // namespace vlmest::diagnose
