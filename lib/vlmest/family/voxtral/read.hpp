// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/voxtral/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/nn/audio/window_rule.hpp>

namespace vlmest::json::hf {

/// VoxtralEncoderConfig.
inline WhisperEncoder read_voxtral_encoder(const Reader& r, WhisperEncoder d) {
  check_part(r, "voxtral_encoder");
  d.widths = read_whisper_widths(r, d.widths);
  d.mels = r.integer("num_mel_bins", d.mels, 1, 1 << 16);
  d.layers = read_whisper_layers(r, d.layers);
  d.positions = r.integer("max_source_positions", d.positions, 1, 1 << 20);
  no_dropping(r, {"layerdrop"});
  return d;
}

/// model_type "voxtral": transformers 5.17, models/voxtral/configuration_voxtral.py. The head has a matrix of its own
/// whatever tie_word_embeddings says: the class names none to tie.
inline Vlm read_voxtral(const Reader& r) {
  const Reader a = r.object("audio_config"), given = r.object("text_config");
  VoxtralFamily f;
  f.audio = read_voxtral_encoder(a, f.audio);
  const nlohmann::json text = with_defaults({{"vocab_size", 131072},
                                             {"hidden_size", 3072},
                                             {"intermediate_size", 8192},
                                             {"num_hidden_layers", 30},
                                             {"num_key_value_heads", 8},
                                             {"head_dim", 128}},
                                            given);
  const Reader t(text, given);
  f.language = read_decoder(t, t.string("model_type", "llama"));
  f.projector.in = f.audio.widths.intermediate;
  f.projector.out = width(f.language);
  f.projector.activation = parse_activation(r.string("projector_hidden_act", "gelu"));
  const std::int64_t states = checked_mul(f.audio.positions, f.audio.widths.hidden);
  if (f.projector.in % f.audio.widths.hidden != 0 || states % f.projector.in != 0)
    a.fail("intermediate_size", "features are made of whole states: a multiple of hidden_size that divides a window");
  Vlm m = text_only("voxtral", f);
  audio::WholeWindows rule{.mel = {.mels = f.audio.mels}, .positions = f.audio.positions};
  rule.mel.chunk_samples = checked_mul(checked_mul(f.audio.positions, 2), rule.mel.hop_length);
  rule.merge = f.projector.in / f.audio.widths.hidden;
  m.audio = rule;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Voxtral {
  static constexpr std::string_view folder = "voxtral";
  static constexpr std::array types{
      json::ModelType{.type = "voxtral", .read = json::hf::read_voxtral, .recorder = json::not_recorded}};
  using Rules = json::Rules<>;
};

}  // namespace vlmest::family
