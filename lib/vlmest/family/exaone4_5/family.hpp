// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/exaone4.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen2_5_vl.hpp>

namespace vlmest {

/// EXAONE 4.5 (transformers models/exaone4_5): Qwen2.5-VL's tower with grouped queries, its merged features scattered
/// into the embeddings of EXAONE 4, whose positions have one axis.
struct Exaone45Family {
  Qwen2_5VlVision vision;
  Exaone4Config language;
  bool tied = false;

  static constexpr AssemblyTraits assembly{.vision = "visual", .projector = nullptr};
};
constexpr FamilyTraits traits(const Exaone45Family& g) {
  return {.features = feature_calls::packed, .frames = g.vision.frames, .videos = VideoPixels::own};
}

using Exaone45Model = Assembly<Exaone45Family>;

inline PackedInputs make_inputs(Context& c, const Exaone45Family& g, const Sequences& s) {
  return make_packed_inputs(c, g.vision.channels, g.vision.frames, g.vision.patch_size, s);
}

/// modeling_exaone4_5.py, Exaone4_5_Model.get_image_features.
inline std::vector<Value> image_features(Context& c, const Exaone45Model& m, const PackedImages& input,
                                         const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, input, s.images);
  return split_by_grid(tower.pooled, input.grid, s.images);
}
/// modeling_exaone4_5.py, Exaone4_5_Model.get_video_features.
inline std::vector<Value> video_features(Context& c, const Exaone45Model& m, const PackedImages& input,
                                         const Sequences& s) {
  const ChunkRun call = video_call(c, s);
  const TowerOutput tower = forward(c, m.vision, input, s.videos);
  return split_by_grid(tower.pooled, input.grid, s.videos);
}

/// modeling_exaone4_5.py, Exaone4_5_ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Exaone45Model& m, const PackedInputs& in, const Sequences& s, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlacedFeatures placed;  // variables of the function: alive until it returns
    if (in.images.pixels) place_images(embeds, in.text.ids, batch_features(c, m, in.images, s), placed);
    if (in.videos.pixels) place_videos(embeds, in.text.ids, video_features(c, m, in.videos, s), placed);
    const Value positions = text_positions(c, embeds.size(1));
    hidden = forward(c, m.language, embeds, positions, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache: generate() leaves its position to the model.
inline Value decode(Context& c, const Exaone45Model& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    const Value positions = text_positions(c, embeds.size(1));
    hidden = forward(c, m.language, embeds, positions, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
