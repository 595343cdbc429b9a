// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family_table.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace toy {

/// SigLIP, two linear modules, a decoder.
struct Family {
  vlmest::SiglipVision vision;
  vlmest::Mlp2Projector projector;
  vlmest::DecoderConfig language;
  bool tied = false;

  static constexpr vlmest::AssemblyTraits assembly{};
};

constexpr vlmest::FamilyTraits traits(const Family&) { return {.features = vlmest::feature_calls::tile_tensor}; }

inline vlmest::PixelInputs make_inputs(vlmest::Context& c, const Family& g, const vlmest::Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

inline vlmest::Value image_features(vlmest::Context& c, const vlmest::Assembly<Family>& m,
                                    const vlmest::PixelInputs& inputs, const vlmest::Sequences& s) {
  const vlmest::TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images});
  return vlmest::eager::flatten(forward(c, m.projector, tower.last), 0, 1);
}

}  // namespace toy

// The compiled library has the tables of its own families.
template <>
inline const vlmest::FamilyFunctions& vlmest::family_functions<toy::Family>() {
  return family_table<toy::Family>;
}
