// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/audio/qwen3_omni.hpp>
#include <vlmest/nn/family/deepstack.hpp>
#include <vlmest/nn/family/omni.hpp>

namespace vlmest {

/// Qwen3-Omni's thinker (transformers 5.17 models/qwen3_omni_moe, Qwen3OmniMoeThinkerForConditionalGeneration): the
/// encoder AuT, Qwen3-VL's tower with DeepStack, Qwen3's layers with experts under positions of three axes.
struct Qwen3OmniFamily {
  Qwen3OmniAudio audio;
  Qwen3VlVision vision{.omni = true};
  Qwen3VlTextConfig language;
  bool tied = false;
  bool whole = false;  ///< of a model_type that also has a talker
};

/// The class is the model that has get_image_features, its own or the whole one's thinker; a list of DeepStack features
/// beside the merged ones, one tensor for each layer.
inline std::string omni_deepstack_line(const std::string& type, std::int64_t n) {
  return "from operator import attrgetter; from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import "
         "BaseModelOutputWithDeepstackFeatures; " +
         feature_calls::wrapped(
             omni_owner(type) + ".get_image_features", "pixel_values, grid",
             "(lambda r: BaseModelOutputWithDeepstackFeatures(pooler_output=[y for a, _ in r for y in a], "
             "deepstack_features=[torch.cat(d) for d in zip(*(b for _, b in r))]))([attrgetter(\"pooler_output\", "
             "\"deepstack_features\")(f(p, g, **k)) " +
                 feature_calls::packed_pairs(n) + "])");
}
constexpr FamilyTraits traits(const Qwen3OmniFamily& g) {
  FamilyTraits t{.features = FeatureCall{omni_deepstack_line}, .frames = g.vision.frames};
  t.audio_tower = t.all_logits = true;
  t.no_videos = "videos of Qwen3-Omni are not modelled";
  if (g.whole)
    t.note =
        "the thinker alone: what Qwen3OmniMoeForConditionalGeneration loads besides to speak (talker, code2wav) is "
        "not counted";
  return t;
}

using Qwen3OmniModel = OmniModel<Qwen3OmniFamily>;

inline Qwen3OmniModel make_model(Context& c, const Qwen3OmniFamily& g) { return make_omni_model(c, g); }

inline OmniInputs make_inputs(Context& c, const Qwen3OmniFamily& g, const Sequences& s) {
  return make_omni_inputs(c, g.vision, s, DType::fp32);
}

/// get_audio_features: [tokens of all clips, hidden].
inline Value audio_features(Context& c, const Qwen3OmniModel& m, const AudioInputs& in, const Sequences& s) {
  const HeardFrames heard = heard_frames(in, s.audios);
  return forward(c, m.audio, heard.features, heard.lengths, s.audios);
}

inline Value prefill(Context& c, const Qwen3OmniModel& m, OmniInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value embeds = embed(c, m.language, in.text.ids);
  OmniPlaced placed;  // variables of the function: alive until it returns
  Qwen3VlImages vision;
  Deepstack deepstack;
  Value positions;
  if (in.audio.features) place_audio(embeds, in.text.ids, audio_features(c, m, in.audio, s), placed);
  if (in.images.pixels) {
    vision = deepstack_batch(c, m.vision, in.images, s);
    place_pictures(embeds, in.text.ids, vision.parts, placed);
    placed.image_mask = select(placed.image_mask, -1, 0);
    deepstack = {placed.image_mask, placed.images.size(0), vision.deepstack};
  }
  if (in.audio.mask) placed.lengths = sum(in.audio.mask, 1, false);
  positions = omni_positions(c, in.text, in.images.grid, placed.lengths, s, in.deltas, {.type = DType::fp32});
  const Value hidden = forward(c, m.language, embeds, positions, in.text.mask, deepstack, cache);
  return all_positions(c, m.head, hidden);
}

inline Value decode(Context& c, const Qwen3OmniModel& m, const TextInputs& in, Cache& cache) {
  return omni_decode(c, m, in, cache);
}

}  // namespace vlmest
