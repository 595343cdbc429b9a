// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/tensor/shape.hpp>

namespace vlmest::diagnose {

/// What a stack alone says that was asked for: by its innermost frames, else by what the program was doing.
constexpr Cause stack_cause(AllocationSite site, RunPhase phase) {
  // An engine that measures itself asks for what its largest inputs need, whichever tensor is the last one.
  if (phase == RunPhase::server_profile && site != AllocationSite::weights && site != AllocationSite::kv_cache)
    return Cause::profile_run;
  switch (site) {
    case AllocationSite::score_matrix:
    case AllocationSite::attention_mask: return Cause::attention_scores;
    case AllocationSite::logits:
    case AllocationSite::logits_upcast:
    case AllocationSite::cross_entropy: return Cause::logits;
    case AllocationSite::optimizer_state:
    case AllocationSite::optimizer_temporary: return Cause::optimizer_state;
    case AllocationSite::gradient: return Cause::gradients;
    case AllocationSite::weights:
    case AllocationSite::module_gather: return Cause::weights;
    case AllocationSite::kv_cache: return Cause::kv_cache;
    case AllocationSite::patch_embedding:
    case AllocationSite::image_features:
    case AllocationSite::pixel_values: return Cause::vision_tiles;
    case AllocationSite::fft: return Cause::fft_buffers;
    case AllocationSite::decoded_media: return Cause::host_memory;
    default: break;
  }
  switch (phase) {
    case RunPhase::load_weights:
    case RunPhase::module_gather: return Cause::weights;
    case RunPhase::vision_forward: return Cause::vision_tiles;
    case RunPhase::loss: return Cause::logits;
    case RunPhase::backward: return Cause::gradients;
    case RunPhase::optimizer_step: return Cause::optimizer_state;
    case RunPhase::server_profile: return Cause::profile_run;
    case RunPhase::forward:
    case RunPhase::decode: return Cause::activations;
    case RunPhase::unknown: break;
  }
  return Cause::unknown;
}

/// What a shape alone tells: the last dimension of logits is a vocabulary, which no width of a layer reaches but those
/// of models beyond 300 billion parameters; the last two of scores are one length; a mask has these two alone.
inline Cause shape_cause(const Shape& s) {
  if (s.rank() < 2) return Cause::unknown;
  const std::int64_t last = s[-1], before = s[-2];
  if (last == before && last >= (s.rank() == 2 ? 8192 : 512)) return Cause::attention_scores;
  return last >= 30000 && last <= 400000 ? Cause::logits : Cause::unknown;
}

/// Whether the kind of tensor that a stack was making is also what filled the device. A module's temporary, a mask or
/// the pixels of a batch are the last drop: how many of them there were, of which length, and what lay beside them
/// the stack does not tell.
constexpr bool tells_what_filled(AllocationSite site, RunPhase phase) {
  switch (site) {
    case AllocationSite::attention_mask:
    case AllocationSite::patch_embedding:
    case AllocationSite::image_features:
    case AllocationSite::pixel_values: return false;
    default: break;
  }
  if (stack_cause(site, RunPhase::unknown) != Cause::unknown) return true;
  return phase != RunPhase::forward && phase != RunPhase::decode && phase != RunPhase::vision_forward;
}

}  // namespace vlmest::diagnose
