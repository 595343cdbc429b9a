// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/tower_facts.hpp>
#include <vlmest/nn/projector/aya_vision.hpp>

namespace vlmest::json::hf {

/// The projector that joins squares of patches, for a tower of these facts: of Aya Vision and Command A Vision.
/// `intermediate` is what an absent alignment_intermediate_size means.
inline AyaVisionProjectorConfig read_joining_projector(const Reader& r, const TowerFacts& tower, std::int64_t out,
                                                       std::int64_t intermediate) {
  AyaVisionProjectorConfig p{.in = tower.hidden, .out = out};
  p.scale = r.integer("downsample_factor", 2, 1, 1 << 10);
  p.intermediate = r.integer("alignment_intermediate_size", intermediate, 1, 1 << 24);
  if (p.intermediate % 2 != 0) r.fail("alignment_intermediate_size", "must be even: it is split into two halves");
  const std::int64_t side = tower.image_size / tower.patch_size;
  if (side % p.scale != 0)
    r.fail("downsample_factor",
           std::to_string(side) + " patches a side are not divisible by " + std::to_string(p.scale));
  return p;
}

}  // namespace vlmest::json::hf
