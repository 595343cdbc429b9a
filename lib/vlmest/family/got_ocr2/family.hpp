// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/vision/sam.hpp>

namespace vlmest {

/// GOT-OCR 2.0 (transformers models/got_ocr2; Wei et al., arXiv:2409.01704): SAM's tower, two convolutions and a linear
/// layer, a language model.
struct GotOcr2Family {
  SamVision vision;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{};
};

/// GotOcr2MultiModalProjector.
struct GotOcr2Projector {
  ScopeId scope = 0;
  ConvPair halvings;
  Linear linear;
};

inline GotOcr2Projector make_projector(Context& c, const GotOcr2Family& g) {
  GotOcr2Projector p{.scope = c.b.scope()};
  const std::int64_t in = g.vision.out, out = width(g.language);
  p.halvings = make_halvings(c, "conv_upsampler1", "conv_upsampler2", in, checked_mul(in, 2), out);
  p.linear = make_linear(c, "multimodal_projector", out, out, true);
  return p;
}

constexpr FamilyTraits traits(const GotOcr2Family&) { return {.features = feature_calls::tile_tensor}; }

using GotOcr2Model = Assembly<GotOcr2Family>;

inline PixelInputs make_inputs(Context& c, const GotOcr2Family& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_got_ocr2.py, GotOcr2MultiModalProjector.forward: [N, C, H, W] -> [N, H W / 16, language width].
inline Value forward(Context& c, const GotOcr2Projector& p, const Value& map) {
  using namespace eager;
  InScope in(c.b, p.scope);
  Value x = forward(c, p.halvings, map);
  x = permute(flatten(x, 2, 3), {0, 2, 1});
  x = forward(c, p.linear, x);
  return x;
}

/// modeling_got_ocr2.py, GotOcr2Model.get_image_features: rows of tiles.
inline Value image_features(Context& c, const GotOcr2Model& m, const PixelInputs& inputs, const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images});
  return forward(c, m.projector, tower.last);
}

}  // namespace vlmest
