// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/family/deepstack.hpp>

namespace vlmest {

/// Qwen3-VL, dense and with experts (transformers models/qwen3_vl, models/qwen3_vl_moe): a tower over packed patches,
/// merged features of its last layer scattered into the embeddings, those of earlier layers added behind the decoder's
/// first layers, positions of three axes.
using Qwen3VlFamily = QwenVlFamily<Qwen3VlVision, Qwen3VlTextConfig>;
/// As feature_calls::packed, with a list of DeepStack features beside it, one tensor for each layer:
/// modeling_qwen3_vl.py, modeling_qwen3_vl_moe.py.
inline std::string deepstack_line(const std::string& type, std::int64_t n) {
  return "from operator import attrgetter; from transformers.models." + type + ".modeling_" + type +
         " import BaseModelOutputWithDeepstackFeatures; " +
         feature_calls::wrapped(
             "model.model.get_image_features", "pixel_values, grid",
             "(lambda r: BaseModelOutputWithDeepstackFeatures(pooler_output=[y for a, _ in r for y in a], "
             "deepstack_features=[torch.cat(d) for d in zip(*(b for _, b in r))]))([attrgetter(\"pooler_output\", "
             "\"deepstack_features\")(f(p, g, **k)) " +
                 feature_calls::packed_pairs(n) + "])");
}
constexpr FamilyTraits traits(const Qwen3VlFamily& g) {
  return {.features = FeatureCall{deepstack_line}, .frames = g.vision.frames, .videos = VideoPixels::own};
}

using Qwen3VlModel = Assembly<Qwen3VlFamily>;

inline Qwen3VlImages image_features(Context& c, const Qwen3VlModel& m, const PackedImages& in, const Sequences& s) {
  return deepstack_features(c, m.vision, in, s.images);
}
inline Qwen3VlImages video_features(Context& c, const Qwen3VlModel& m, const PackedImages& in, const Sequences& s) {
  const ChunkRun call = video_call(c, s);
  return deepstack_features(c, m.vision, in, s.videos);
}
inline Qwen3VlImages batch_features(Context& c, const Qwen3VlModel& m, const PackedImages& in, const Sequences& s) {
  return deepstack_batch(c, m.vision, in, s);
}

/// modeling_qwen3_vl.py, Qwen3VLForConditionalGeneration.forward over a fresh cache; the inputs'
/// rope_deltas become this call's.
inline Value prefill(Context& c, const Qwen3VlModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Qwen3VlImages vision, frames;  // variables of the function: alive until it returns
    PlacedFeatures placed;
    Value positions;
    JoinedDeepstack both;
    if (in.images.pixels) {
      vision = batch_features(c, m, in.images, s);
      place_images(embeds, in.text.ids, vision.parts, placed);
    }
    if (in.videos.pixels) {
      frames = video_features(c, m, in.videos, s);
      place_videos(embeds, in.text.ids, frames.parts, placed);
    }
    const Deepstack deepstack = deepstack_of(placed, vision, frames, both);
    if (in.mrope.token_types) positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
    hidden = forward(c, m.language, embeds, positions, in.text.mask, deepstack, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
