// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/qwen2_5_omni.hpp>
#include <vlmest/nn/family/omni.hpp>
#include <vlmest/nn/vision/qwen2_5_vl.hpp>

namespace vlmest {

/// Qwen2.5-Omni's thinker (transformers 5.17 models/qwen2_5_omni, Qwen2_5OmniThinkerForConditionalGeneration):
/// Whisper's encoder over chunks of sound, Qwen2.5-VL's tower, Qwen2's layers under positions of three axes.
struct Qwen2_5OmniFamily {
  Qwen2_5OmniAudio audio;
  Qwen2_5VlVision vision{.apart = true};
  QwenVlTextConfig language;
  bool tied = false;
  bool whole = false;  ///< of a model_type that also has a talker
};

/// As feature_calls::packed, of the class that has get_image_features itself.
inline std::string omni_packed_line(const std::string& type, std::int64_t n) {
  return "from transformers.modeling_outputs import BaseModelOutputWithPooling; " +
         feature_calls::wrapped(omni_owner(type) + ".get_image_features", "pixel_values, grid",
                                "BaseModelOutputWithPooling(pooler_output=[y " + feature_calls::packed_pairs(n) +
                                    " for y in f(p, g, **k).pooler_output])");
}
constexpr FamilyTraits traits(const Qwen2_5OmniFamily& g) {
  FamilyTraits t{.features = FeatureCall{omni_packed_line}, .frames = g.vision.frames};
  t.audio_tower = t.all_logits = true;
  t.no_videos = "videos of Qwen2.5-Omni are not modelled";
  if (g.whole)
    t.note =
        "the thinker alone: what Qwen2_5OmniForConditionalGeneration loads besides to speak "
        "(talker, token2wav) is not counted";
  return t;
}

using Qwen2_5OmniModel = OmniModel<Qwen2_5OmniFamily>;

inline Qwen2_5OmniModel make_model(Context& c, const Qwen2_5OmniFamily& g) { return make_omni_model(c, g); }

inline OmniInputs make_inputs(Context& c, const Qwen2_5OmniFamily& g, const Sequences& s) {
  return make_omni_inputs(c, g.vision, s, DType::int64);
}

/// get_audio_features: [tokens of all clips, hidden].
inline Value audio_features(Context& c, const Qwen2_5OmniModel& m, const AudioInputs& in, const Sequences& s) {
  using namespace eager;
  const HeardFrames heard = heard_frames(in, s.audios);
  const Value states = halved(heard.lengths), tokens = halved(states);
  Value features = forward(c, m.audio, heard.features, heard.lengths, s.audios);
  to_host(tokens);
  return features;
}

/// get_image_features: a list with those of each picture.
inline std::vector<Value> image_features(Context& c, const Qwen2_5OmniModel& m, const PackedImages& in,
                                         const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, in, s.images);
  return split_by_grid(tower.pooled, in.grid, s.images);
}

inline Value prefill(Context& c, const Qwen2_5OmniModel& m, OmniInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value embeds = embed(c, m.language, in.text.ids);
  OmniPlaced placed;
  Value positions;
  if (in.audio.features) place_audio(embeds, in.text.ids, audio_features(c, m, in.audio, s), placed);
  if (in.images.pixels) place_pictures(embeds, in.text.ids, batch_features(c, m, in.images, s), placed);
  if (in.audio.mask) placed.lengths = sum(in.audio.mask, 1, false);
  positions = omni_positions(c, in.text, in.images.grid, placed.lengths, s, in.deltas, {.begins_on_device = true});
  const Value hidden = forward(c, m.language, embeds, positions, in.text.mask, cache);
  return all_positions(c, m.head, hidden);
}

inline Value decode(Context& c, const Qwen2_5OmniModel& m, const TextInputs& in, Cache& cache) {
  return omni_decode(c, m, in, cache);
}

}  // namespace vlmest
