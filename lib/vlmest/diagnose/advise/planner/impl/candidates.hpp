// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/planner/candidates.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE const ActionEntry* action_entry(std::string_view id) {
  static constexpr auto find = [](const auto& table, std::string_view name) -> const ActionEntry* {
    for (const auto& e : table)
      if (e.id == name) return &e;
    return nullptr;
  };
  if (const auto* e = find(training_actions, id)) return e;
  if (const auto* e = find(inference_actions, id)) return e;
  if (const auto* e = find(input_actions, id)) return e;
  return find(process_actions, id);
}

VLMEST_INLINE std::optional<Candidate> with(const Candidate& c, std::string_view id, const Device& device, Mode mode) {
  const ActionEntry* e = action_entry(id);
  if (!e) return std::nullopt;
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
  for (const auto id : {"lora-16", "qlora"})
    if (auto c = with({asked, {}}, id, device, mode)) first.push_back(std::move(*c));
  return combined(std::move(first), device, mode);
}

}  // namespace vlmest::diagnose
