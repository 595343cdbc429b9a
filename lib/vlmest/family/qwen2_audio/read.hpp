// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen2_audio/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/nn/audio/whisper_rule.hpp>

namespace vlmest::json::hf {

/// model_type "qwen2_audio": transformers 5.17, models/qwen2_audio/configuration_qwen2_audio.py. The processor fills
/// clips up to 30 seconds, and the encoder refuses other lengths than its positions are for.
inline Vlm read_qwen2_audio(const Reader& r) {
  const Reader a = r.object("audio_config"), t = r.object("text_config");
  check_part(a, "qwen2_audio_encoder");
  Qwen2AudioFamily f;
  f.audio = read_whisper(a, f.audio);
  f.language = read_decoder(t, t.string("model_type", "qwen2"));
  Vlm m = text_only("qwen2_audio", f);
  audio::FilledClips rule{.mel = {.mels = f.audio.mels}, .positions = f.audio.positions};
  rule.mel.chunk_samples = checked_mul(checked_mul(f.audio.positions, 2), rule.mel.hop_length);
  m.audio = rule;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen2Audio {
  static constexpr std::string_view folder = "qwen2_audio";
  static constexpr std::array types{
      json::ModelType{.type = "qwen2_audio", .read = json::hf::read_qwen2_audio, .recorder = json::not_recorded}};
  using Rules = json::Rules<>;
};

}  // namespace vlmest::family
