// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/family/glmasr/family.hpp>
#include <vlmest/family/glmasr/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/text_only.hpp>

namespace vlmest::json::hf {

/// GlmAsrEncoderConfig.
inline GlmAsrEncoder read_glmasr_encoder(const Reader& r) {
  check_part(r, "glmasr_encoder");
  GlmAsrEncoder d;
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  const Heads h = heads(r, d.hidden, d.heads, std::nullopt, std::nullopt);
  d.heads = h.heads;
  d.kv_heads = h.kv_heads;
  d.head_dim = h.head_dim;
  d.mels = r.integer("num_mel_bins", d.mels, 1, 1 << 16);
  d.activation = parse_activation(r.string("hidden_act", "gelu"));
  d.rotary_dim = read_rotary_dim(r, d.head_dim, 0.5);
  no_dropping(r, {"attention_dropout"});
  return d;
}

/// model_type "glmasr": transformers 5.17, models/glmasr/configuration_glmasr.py.
inline Vlm read_glmasr(const Reader& r) {
  const Reader given = r.object("text_config");
  GlmAsrFamily f;
  f.audio = read_glmasr_encoder(r.object("audio_config"));
  const nlohmann::json text = with_defaults({{"vocab_size", 59264},
                                             {"hidden_size", 2048},
                                             {"intermediate_size", 6144},
                                             {"num_hidden_layers", 28},
                                             {"num_attention_heads", 16},
                                             {"num_key_value_heads", 4}},
                                            given);
  const Reader t(text, given);
  f.language = read_decoder(t, t.string("model_type", "llama"));
  f.projector = {.in = f.audio.intermediate,
                 .out = width(f.language),
                 .activation = parse_activation(r.string("projector_hidden_act", "gelu")),
                 .inner = checked_mul(width(f.language), 2)};
  f.tied = r.boolean("tie_word_embeddings", true);
  if (f.audio.intermediate != checked_mul(f.audio.hidden, 4))
    r.object("audio_config").fail("intermediate_size", "a feature is four states, as the processor counts them");
  Vlm m = text_only("glmasr", f);
  m.audio = audio::FilledWindows{.mel = {.mels = f.audio.mels}};
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct GlmAsr {
  static constexpr std::string_view folder = "glmasr";
  static constexpr std::array types{
      json::ModelType{.type = "glmasr", .read = json::hf::read_glmasr, .recorder = json::not_recorded}};
  using Rules = json::Rules<>;
};

}  // namespace vlmest::family
