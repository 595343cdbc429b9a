// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/whisper_encoder.hpp>
#include <vlmest/nn/family/audio_lm.hpp>

namespace vlmest {

/// Voxtral (transformers 5.17 models/voxtral): Whisper's encoder over windows of 30 seconds, four states of which make
/// one feature, and a language model of Llama's build.
struct VoxtralFamily {
  WhisperEncoder audio{.wide_positions = true};
  DecoderConfig language;
  Mlp2Projector projector{.bias = false};
  bool tied = false;
};
constexpr FamilyTraits traits(const VoxtralFamily&) {
  return {.features = feature_calls::no_images, .audio_tower = true};
}

using VoxtralModel = AudioLm<VoxtralFamily>;

inline VoxtralModel make_model(Context& c, const VoxtralFamily& g) { return make_audio_lm(c, g); }
inline AudioLmInputs make_inputs(Context& c, const VoxtralFamily&, const Sequences& s) {
  return make_audio_lm_inputs(c, s, nullptr);
}

/// modeling_voxtral.py, VoxtralModel.get_audio_features: [features of all windows, language width].
inline Value audio_features(Context& c, const VoxtralModel& m, const AudioInputs& in, const Sequences&) {
  Value states = forward(c, m.audio, in.features, {});
  const Value rows = eager::reshape(states, {-1, m.config->projector.in});
  return forward(c, m.projector, rows);
}

inline Value prefill(Context& c, const VoxtralModel& m, const AudioLmInputs& in, const Sequences& s, Cache& cache) {
  return audio_lm_prefill(c, m, in, s, cache);
}
inline Value decode(Context& c, const VoxtralModel& m, const TextInputs& in, Cache& cache) {
  return audio_lm_decode(c, m, in, cache);
}

}  // namespace vlmest
