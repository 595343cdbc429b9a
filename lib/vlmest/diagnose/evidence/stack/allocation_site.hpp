// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/evidence/stack/frame_meaning.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>

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
RunPhase run_phase(const std::vector<Frame>& frames);

/// Whether a stack went through the vision tower, whatever its phase is called.
bool in_vision_tower(const std::vector<Frame>& frames);

/// Whether it was in a layer of the language model.
bool in_decoder(const std::vector<Frame>& frames);

/// The tensor that a stack was making: the innermost frame that names one, else what the innermost kernels are.
AllocationSite allocation_site_of(const std::vector<Frame>& frames);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/allocation_site.hpp>
#endif
