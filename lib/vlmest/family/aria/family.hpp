// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/family/aria/projector.hpp>
#include <vlmest/nn/decoder/aria_text.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/feature_calls.hpp>
#include <vlmest/nn/vision/idefics3.hpp>

namespace vlmest {

/// Aria (Li et al., arXiv:2410.05993; transformers 5.17 models/aria): Idefics3's tower over squares with padding,
/// learned queries that attend to one of its layers, a language model with experts.
struct AriaFamily {
  Idefics3Vision vision;
  AriaProjectorConfig projector;
  AriaTextConfig language;
  std::int64_t feature_layer = -1;  ///< vision_feature_layer
  bool tied = false;

  static constexpr AssemblyTraits assembly{};
};

/// get_image_features(pixel_values, pixel_mask): modeling_aria.py.
inline std::string aria_line(const std::string&, std::int64_t n) {
  using namespace feature_calls;
  return image_features("pixel_values, pixel_mask",
                        "torch.cat([f(pixel_values=p, pixel_mask=m, **k).pooler_output for p, m in zip(" +
                            split("pixel_values", n) + ", " + split("pixel_mask", n) + ")])");
}
constexpr FamilyTraits traits(const AriaFamily&) { return {.features = FeatureCall{aria_line, true}}; }

using AriaModel = Assembly<AriaFamily>;

struct AriaInputs {
  TextInputs text;
  Value pixels;  ///< [squares, channels, side, side]; none without images
  Value mask;    ///< pixel_mask: bool[squares, side, side], true where a picture's pixels are
};

/// Throws Error for pictures that are cut into different numbers of squares: the processor writes the placeholders of
/// the largest number for each (processing_aria.py, replace_image_token), and the model stops at them.
inline AriaInputs make_inputs(Context& c, const AriaFamily& g, const Sequences& s) {
  AriaInputs in;
  if (!s.images.empty()) {
    const ImageLayout& first = s.images.front();
    std::int64_t squares = 0;
    for (const ImageLayout& i : s.images) {
      if (i.tiles != first.tiles)
        throw Error("image size",
                    "pictures in " + std::to_string(first.tiles) + " and in " + std::to_string(i.tiles) +
                        " squares: the processor writes as many placeholders for each",
                    "give images of one size, or leave them whole");
      squares = checked_add(squares, i.tiles);
    }
    const std::int64_t side = first.resized.height / first.tile_grid.rows;
    in.pixels = c.b.existing("pixel_values", Role::input, c.dtype(), {squares, g.vision.channels, side, side});
    in.mask = c.b.existing("pixel_mask", Role::input, DType::boolean, {squares, side, side});
  }
  in.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return in;
}

inline std::vector<VisionChunk<AriaInputs>> vision_chunks(Context& c, const AriaInputs& in, const Sequences& s) {
  return cut_rows(c, in, s, single_tiles(s.images), &AriaInputs::mask);
}

/// AriaModel.get_image_features and _create_patch_attention_mask: -> [squares, queries, width]. The tower's output is
/// dropped with the function.
inline Value image_features(Context& c, const AriaModel& m, const AriaInputs& in, const Sequences& s) {
  using namespace eager;
  const AriaFamily& g = *m.config;
  std::int64_t real = 0;
  for (const ImageLayout& i : s.images)
    real = checked_add(real, i.real_patches > 0 ? i.real_patches : checked_mul(i.tiles, i.tower_tokens));
  const Value patches = patches_with_pixels(in.mask, g.vision.patch_size);
  TowerInput called{.pixels = in.pixels, .images = s.images};
  called.keep_hidden_states = true;
  const TowerOutput tower = forward(c, m.vision, called, patches, real);
  Value padding;
  if (c.stack().makes_masks) padding = compare_scalar("logical_not", flatten(patches, 1, 2));
  return forward(c, m.projector, hidden_state(tower, g.feature_layer), padding);
}

}  // namespace vlmest
