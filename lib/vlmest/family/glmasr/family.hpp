// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/glmasr/encoder.hpp>
#include <vlmest/nn/family/audio_lm.hpp>

namespace vlmest {

/// GLM-ASR (transformers 5.17 models/glmasr): an encoder over windows of 30 seconds, four states of which make one
/// feature, and a language model of Llama's build.
struct GlmAsrFamily {
  GlmAsrEncoder audio;
  DecoderConfig language;
  Mlp2Projector projector;
  bool tied = true;
};
constexpr FamilyTraits traits(const GlmAsrFamily&) {
  return {.features = feature_calls::no_images, .audio_tower = true};
}

using GlmAsrModel = AudioLm<GlmAsrFamily>;

inline GlmAsrModel make_model(Context& c, const GlmAsrFamily& g) { return make_audio_lm(c, g); }
inline AudioLmInputs make_inputs(Context& c, const GlmAsrFamily&, const Sequences& s) {
  return make_audio_lm_inputs(c, s, "input_features_mask");
}

/// modeling_glmasr.py, GlmAsrModel.get_audio_features: [features of all clips, language width].
inline Value audio_features(Context& c, const GlmAsrModel& m, const AudioInputs& in, const Sequences& s) {
  using namespace eager;
  const Value states = forward(c, m.audio, in.features);
  const Value rows = reshape(states, {in.features.size(0), -1, m.config->projector.in});
  const Value embeds = forward(c, m.projector, rows);
  Value lengths = sum(in.mask, -1, false);
  for (int i = 0; i < 2; ++i) {  // (length + 2 padding - (kernel - 1) - 1) // stride + 1 of each convolution
    Value padded = add_scalar(lengths);
    padded = sub_scalar(std::move(padded));
    lengths = add_scalar(floor_divide(sub_scalar(std::move(padded))));
  }
  const Value kept = add_scalar(floor_divide(sub_scalar(lengths)));
  Value places = arange(c.b, embeds.size(1));
  const Value valid = compare("lt.Tensor", unsqueeze(std::move(places), 0), unsqueeze(kept, 1));
  return masked_index(embeds, valid, audio_feature_count(s.audios));
}

inline Value prefill(Context& c, const GlmAsrModel& m, const AudioLmInputs& in, const Sequences& s, Cache& cache) {
  return audio_lm_prefill(c, m, in, s, cache);
}
inline Value decode(Context& c, const GlmAsrModel& m, const TextInputs& in, Cache& cache) {
  return audio_lm_decode(c, m, in, cache);
}

}  // namespace vlmest
