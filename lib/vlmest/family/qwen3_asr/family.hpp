// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/qwen3_asr.hpp>
#include <vlmest/nn/family/audio_lm.hpp>

namespace vlmest {

/// Qwen3-ASR (transformers 5.17 models/qwen3_asr): Qwen3-Omni's encoder over chunks of a second, a projector, Qwen3.
struct Qwen3AsrFamily {
  Qwen3AsrAudio audio;
  DecoderConfig language;
  Mlp2Projector projector;
  bool tied = true;
};
constexpr FamilyTraits traits(const Qwen3AsrFamily&) {
  return {.features = feature_calls::no_images, .audio_tower = true};
}

using Qwen3AsrModel = AudioLm<Qwen3AsrFamily>;

inline Qwen3AsrModel make_model(Context& c, const Qwen3AsrFamily& g) { return make_audio_lm(c, g); }
inline AudioLmInputs make_inputs(Context& c, const Qwen3AsrFamily&, const Sequences& s) {
  return make_audio_lm_inputs(c, s, "input_features_mask");
}

/// modeling_qwen3_asr.py, Qwen3ASRModel.get_audio_features: [features of all clips, language width].
inline Value audio_features(Context& c, const Qwen3AsrModel& m, const AudioInputs& in, const Sequences& s) {
  const Value states = forward(c, m.audio, in.features, in.mask, s.audios);
  return forward(c, m.projector, states);
}

inline Value prefill(Context& c, const Qwen3AsrModel& m, const AudioLmInputs& in, const Sequences& s, Cache& cache) {
  return audio_lm_prefill(c, m, in, s, cache);
}
inline Value decode(Context& c, const Qwen3AsrModel& m, const TextInputs& in, Cache& cache) {
  return audio_lm_decode(c, m, in, cache);
}

}  // namespace vlmest
