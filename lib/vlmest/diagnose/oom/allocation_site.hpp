// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/diagnose/oom/allocation_words.hpp>
#include <vlmest/diagnose/text/traceback.hpp>

/// What a stack was doing, and for which kind of tensor.
namespace vlmest::diagnose {

namespace allocation_site {

/// Whether the phase of a frame replaces that of the frames further out. A forward within a backward is a
/// recomputation, one within generate() a decode step, one within a profile run that run's.
constexpr bool replaces(RunPhase inner, RunPhase outer) {
  if (outer == RunPhase::unknown || outer == RunPhase::forward) return true;
  if (inner == RunPhase::load_weights) return false;  // an __init__ within a forward is no model's
  if (inner == RunPhase::forward) return outer == RunPhase::optimizer_step || outer == RunPhase::load_weights;
  switch (outer) {
    case RunPhase::backward: return inner == RunPhase::module_gather || inner == RunPhase::optimizer_step;
    case RunPhase::server_profile: return false;
    case RunPhase::module_gather: return false;
    case RunPhase::decode: return inner != RunPhase::loss;
    default: return true;
  }
}

}  // namespace allocation_site

/// The phase of a stack, outermost frame first.
inline RunPhase run_phase(const std::vector<Frame>& frames) {
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

/// Whether a stack went through the vision tower, whatever its phase is called.
inline bool in_vision_tower(const std::vector<Frame>& frames) {
  using namespace allocation_site;
  return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
    const auto f = low(frame);
    return std::any_of(phases.begin(), phases.end(),
                       [&](const auto& r) { return r.meaning == RunPhase::vision_forward && matches(r, f); });
  });
}

/// The tensor that a stack was making: the innermost frame that names one, else what the innermost kernels are.
inline AllocationSite allocation_site_of(const std::vector<Frame>& frames) {
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
