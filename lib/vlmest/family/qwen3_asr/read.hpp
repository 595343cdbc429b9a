// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen3_asr/family.hpp>
#include <vlmest/family/qwen3_asr/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/text_only.hpp>

namespace vlmest::json::hf {

/// Qwen3ASREncoderConfig.
inline Qwen3AsrAudio read_qwen3_asr_audio(const Reader& r) {
  check_part(r, "qwen3_asr_encoder");
  Qwen3AsrAudio d;
  Qwen3OmniAudio& g = d.chunks;
  g.widths = read_whisper_widths(r, g.widths);
  g.mels = r.integer("num_mel_bins", g.mels, 1, 1 << 16);
  g.layers = read_whisper_layers(r, g.layers);
  read_chunk_windows(r, "max_position_embeddings", g);
  return d;
}

/// model_type "qwen3_asr": transformers 5.17, models/qwen3_asr/configuration_qwen3_asr.py. Without a text_config the
/// language model is Qwen3 of 28 layers, 2048 wide.
inline Vlm read_qwen3_asr(const Reader& r) {
  static const nlohmann::json absent{{"hidden_size", 2048},      {"intermediate_size", 6144},
                                     {"num_hidden_layers", 28},  {"num_attention_heads", 16},
                                     {"num_key_value_heads", 8}, {"head_dim", 128}};
  const Reader t = r.given("text_config") ? r.object("text_config") : Reader(absent, r.path() + ".text_config");
  Qwen3AsrFamily f;
  f.audio = read_qwen3_asr_audio(r.object("audio_config"));
  f.language = read_decoder(t, t.string("model_type", "qwen3"));
  f.projector = {.in = f.audio.chunks.widths.hidden,
                 .out = f.audio.chunks.out,
                 .activation = f.audio.chunks.widths.activation,
                 .inner = f.audio.chunks.widths.hidden};
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m = text_only("qwen3_asr", f);
  m.audio = audio::WholeChunks{.mel = {.mels = f.audio.chunks.mels}, .window = f.audio.chunks.window};
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen3Asr {
  static constexpr std::string_view folder = "qwen3_asr";
  static constexpr std::array types{
      json::ModelType{.type = "qwen3_asr", .read = json::hf::read_qwen3_asr, .recorder = json::not_recorded}};
  using Rules = json::Rules<>;
};

}  // namespace vlmest::family
