// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE RunPhase run_phase(const std::vector<Frame>& frames) {
  using namespace allocation_site;
  RunPhase phase = RunPhase::unknown;
  for (const auto& frame : frames) {
    const auto f = low(frame);
    for (const auto& r : phases)
      if (matches(r, f)) {
        if (replaces(r.meaning, phase)) phase = r.meaning;
        break;
      }
  }
  // Models whose file holds the tower and no decoder, which is another model's (transformers, models/idefics3, ...).
  if (phase == RunPhase::forward || phase == RunPhase::unknown)
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const auto f = low(*frame);
      if (!log_prefix::has(f.file, "modeling_")) continue;
      for (const std::string_view family : {"modeling_idefics2", "modeling_idefics3", "modeling_smolvlm"})
        if (log_prefix::has(f.file, family) && f.function == "forward" && !log_prefix::has(f.code, "lm_head"))
          phase = RunPhase::vision_forward;
      break;
    }
  return phase;
}

VLMEST_INLINE bool in_vision_tower(const std::vector<Frame>& frames) {
  using namespace allocation_site;
  return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
    const auto f = low(frame);
    return std::any_of(phases.begin(), phases.end(),
                       [&](const auto& r) { return r.meaning == RunPhase::vision_forward && matches(r, f); });
  });
}

VLMEST_INLINE AllocationSite allocation_site_of(const std::vector<Frame>& frames) {
  using namespace allocation_site;
  AllocationSite kernel = AllocationSite::unknown;
  bool in_step = false;  // of a run, inside of which nothing is loaded
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto f = low(*frame);
    for (const auto& r : sites)
      if (matches(r, f)) {
        // Whose pixels they are, who made the model, and whose step it is, is far out: a forward or a kernel further
        // in says more.
        const bool far = r.meaning == AllocationSite::weights || r.meaning == AllocationSite::pixel_values ||
                         r.meaning == AllocationSite::optimizer_temporary;
        if (r.meaning == AllocationSite::unknown) return kernel;
        if (far && (kernel != AllocationSite::unknown || in_step)) return kernel;
        return r.meaning;
      }
    in_step = in_step || f.function == "forward" || f.function == "backward" || f.function == "training_step";
    if (kernel != AllocationSite::unknown) continue;
    for (const auto& r : kernels)
      if (matches(r, f)) kernel = r.meaning;
  }
  return kernel;
}

}  // namespace vlmest::diagnose
