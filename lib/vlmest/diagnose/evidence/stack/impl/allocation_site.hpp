// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/diagnose/evidence/stack/frame_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE RunPhase run_phase(const std::vector<Frame>& frames) {
  using namespace frame_words;
  RunPhase phase = RunPhase::unknown;
  for (const auto& frame : frames) {
    const auto* m = first(low(frame), [](const FrameMeaning& x) { return x.phase != RunPhase::unknown; });
    if (m != nullptr && allocation_site::replaces(m->phase, phase)) phase = m->phase;
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
  using namespace frame_words;
  return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
    return first(low(frame), [](const FrameMeaning& x) { return x.phase == RunPhase::vision_forward; }) != nullptr;
  });
}

VLMEST_INLINE bool in_decoder(const std::vector<Frame>& frames) {
  using namespace frame_words;
  return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
    const LowFrame f = low(frame);
    return std::any_of(all.begin(), all.end(),
                       [&](const FrameWord& w) { return (w.means.traits & trait::decoder) != 0 && matches(w, f); });
  });
}

VLMEST_INLINE AllocationSite allocation_site_of(const std::vector<Frame>& frames) {
  using namespace frame_words;
  AllocationSite kernel = AllocationSite::unknown;
  bool in_step = false;  // of a run, inside of which nothing is loaded
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto f = low(*frame);
    if (const auto* m = first(f, [](const FrameMeaning& x) { return x.site.has_value(); })) {
      // Whose pixels they are, who made the model, and whose step it is, is far out: a forward or a kernel further
      // in says more.
      const AllocationSite site = *m->site;
      const bool far = site == AllocationSite::weights || site == AllocationSite::pixel_values ||
                       site == AllocationSite::optimizer_temporary;
      if (site == AllocationSite::unknown) return kernel;
      if (far && (kernel != AllocationSite::unknown || in_step)) return kernel;
      return site;
    }
    in_step = in_step || f.function == "forward" || f.function == "backward" || f.function == "training_step";
    if (kernel != AllocationSite::unknown) continue;
    for (const FrameWord& w : all)
      if (w.means.kernel != AllocationSite::unknown && matches(w, f)) kernel = w.means.kernel;
  }
  return kernel;
}

}  // namespace vlmest::diagnose
