// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/qwen3_5_text.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen3_vl.hpp>

namespace vlmest {

/// Qwen3.5, 3.6 and 3.8, dense and with experts (transformers models/qwen3_5, models/qwen3_5_moe): Qwen3-VL's tower
/// without DeepStack over a language model of linear and full attention.
using Qwen35Family = QwenVlFamily<Qwen3VlVision, Qwen35TextConfig>;
using Qwen35Model = Assembly<Qwen35Family>;
/// The language model alone: Qwen3_5ForCausalLM, Qwen3_5MoeForCausalLM.
using Qwen35LmFamily = CausalLm<Qwen35TextConfig>;

constexpr FamilyTraits traits(const Qwen35Family& g) {
  return {.features = feature_calls::packed, .frames = g.vision.frames, .videos = VideoPixels::own};
}

/// What a forward gets of get_image_features, of which it keeps all to its end.
struct Qwen35Images {
  std::vector<Value> parts;  ///< pooler_output: merged features of each image
  TowerOutput tower;
};

/// modeling_qwen3_5.py, Qwen3_5Model.get_image_features.
inline Qwen35Images features_of(Context& c, const Qwen35Model& m, const PackedImages& in,
                                std::span<const ImageLayout> images) {
  Qwen3VlFeatures vision = forward(c, m.vision, in, images);
  std::vector<Value> parts = split_by_grid(vision.tower.pooled, in.grid, images);
  return {std::move(parts), std::move(vision.tower)};
}
inline Qwen35Images image_features(Context& c, const Qwen35Model& m, const PackedImages& in, const Sequences& s) {
  return features_of(c, m, in, s.images);
}
inline Qwen35Images video_features(Context& c, const Qwen35Model& m, const PackedImages& in, const Sequences& s) {
  const ChunkRun call = video_call(c, s);
  return features_of(c, m, in, s.videos);
}

/// The same in chunks, of which the features stay.
inline Qwen35Images batch_features(Context& c, const Qwen35Model& m, const PackedImages& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) {
    const ChunkRun one(c, 0, 1 + video_calls(s));
    return image_features(c, m, in, s);
  }
  Qwen35Images all;
  const auto chunks = vision_chunks(c, in, s);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size() + video_calls(s));
    Qwen35Images part = image_features(c, m, chunks[i].inputs, chunks[i].sequences);
    std::move(part.parts.begin(), part.parts.end(), std::back_inserter(all.parts));
  }
  return all;
}

/// modeling_qwen3_5.py, Qwen3_5ForConditionalGeneration.forward over a fresh cache; the inputs' rope_deltas become this
/// call's.
inline Value prefill(Context& c, const Qwen35Model& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Qwen35Images vision, frames;  // variables of the function: alive until it returns
    PlacedFeatures placed;
    Value positions;
    if (in.images.pixels) {
      vision = batch_features(c, m, in.images, s);
      place_images(embeds, in.text.ids, vision.parts, placed);
    }
    if (in.videos.pixels) {
      frames = video_features(c, m, in.videos, s);
      place_videos(embeds, in.text.ids, frames.parts, placed);
    }
    if (in.mrope.token_types) positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
    hidden = forward(c, m.language, embeds, positions, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
