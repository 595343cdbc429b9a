// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/llava.hpp>
#include <vlmest/nn/family/llava_next.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// The canvases of image_grid_pinpoints, [height, width] each, or `absent`; throws Error for a canvas that is not whole
/// tiles: its features could not be joined.
inline std::vector<ImageSize> read_pinpoints(const Reader& r, std::vector<ImageSize> absent, std::int64_t tile) {
  const char* const key = "image_grid_pinpoints";
  std::vector<ImageSize> list = std::move(absent);
  if (r.given(key)) {
    const auto& v = r.value()[key];
    const char* const form = "expected a list of [height, width]";
    if (!v.is_array() || v.empty() || v.size() > 4096) r.fail(key, form);
    list.clear();
    for (const auto& e : v) {
      if (!e.is_array() || e.size() != 2 || !e[0].is_number_integer() || !e[1].is_number_integer()) r.fail(key, form);
      for (const auto& side : e)
        if (side < 1 || side > tokens::max_side) r.fail(key, "a side is out of range");
      list.push_back({e[0].get<std::int64_t>(), e[1].get<std::int64_t>()});
    }
  }
  for (const auto& s : list)
    if (s.height % tile != 0 || s.width % tile != 0)
      r.fail(key, std::to_string(s.height) + "x" + std::to_string(s.width) + " is not whole tiles",
             "give multiples of vision_config.image_size, " + std::to_string(tile));
  return list;
}

/// Tiles can only be joined where each patch has one feature: without the class token, where the tower has one.
inline void check_features_per_patch(const Reader& r, const TowerFacts& g, bool drop_first) {
  if (g.class_token != drop_first)
    r.fail("vision_feature_select_strategy", "leaves other than one feature per patch of a tile",
           "use \"default\" for a tower with a class token and \"full\" for one without");
}

/// The same parts as another family's.
template <class Family>
Family anyres_family(const LlavaFamily& f, bool tied) {
  return {.vision = f.vision,
          .projector = f.projector,
          .language = f.language,
          .feature_layers = f.feature_layers,
          .layer_list = f.layer_list,
          .drop_first = f.drop_first,
          .tied = tied};
}

/// model_type "llava_next": transformers 5.17, models/llava_next/configuration_llava_next.py. Without a vision_config
/// the tower is CLIP-L/14 at 336 pixels, without a text_config the language model is Llama; the output head is tied
/// only by the model's own key. The native size is the largest square canvas.
inline Vlm read_llava_next(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  const LlavaFamily f = read_llava_parts(r, clip, "llama", -2, "default");
  const TowerFacts g = facts(f.vision);
  check_features_per_patch(r, g, f.drop_first);
  const tokens::LlavaNext defaults;
  const tokens::LlavaNext rule{.image_size = g.image_size,
                               .patch_size = g.patch_size,
                               .class_token = g.class_token,
                               .select = f.drop_first ? tokens::FeatureSelect::drop_first : tokens::FeatureSelect::full,
                               .pinpoints = read_pinpoints(r, defaults.pinpoints, g.image_size)};
  Vlm m{.type = "llava_next"};
  m.native = {g.image_size, g.image_size};
  for (const auto& s : rule.pinpoints)
    if (s.height == s.width && s.height > m.native.height) m.native = s;
  m.tokens = rule;
  m.family = anyres_family<LlavaNextFamily>(f, r.boolean("tie_word_embeddings", false));
  return m;
}

}  // namespace vlmest::json::hf
