// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/actions_training.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace action {

VLMEST_INLINE std::vector<Settings> checkpointed_layers(const Subject& s) {
  std::vector<Settings> r;
  if (!s.training() || s.plan().checkpointing != Checkpointing::off) return r;
  const auto layers = static_cast<std::int64_t>(s.now.vlm.family.make_cache().layers.size());
  for (std::int64_t k = 1, last = 0; k < lever_steps; ++k) {
    const std::int64_t n = layers * k / lever_steps;
    if (n == last) continue;
    last = n;
    Plan& p = r.emplace_back(s.now).plan;
    p.checkpointing = Checkpointing::full;
    p.checkpointed = {.vision = false, .language = true, .layers = n};
  }
  return r;
}

}  // namespace action
}  // namespace vlmest::diagnose
