// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/oom/allocation_site.hpp>
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
