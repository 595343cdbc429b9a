// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen2_5_omni/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/qwen2_5_vl.hpp>
#include <vlmest/json/processor/qwen2_5_vl.hpp>
#include <vlmest/nn/audio/whisper_rule.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/qwen2_5_omni/configuration_qwen2_5_omni.py.
namespace vlmest::json::hf {

/// Qwen2_5OmniAudioEncoderConfig.
inline Qwen2_5OmniAudio read_qwen2_5_omni_audio(const Reader& r) {
  check_part(r, "qwen2_5_omni_audio_encoder");
  Qwen2_5OmniAudio d;
  d.widths = read_whisper_widths(r, d.widths);
  d.mels = r.integer("num_mel_bins", d.mels, 1, 1 << 16);
  d.layers = read_whisper_layers(r, d.layers);
  d.positions = r.integer("max_source_positions", d.positions, 1, 1 << 20);
  d.window = r.integer("n_window", d.window, 1, d.positions);
  d.out = r.integer("output_dim", d.out, 1, 1 << 20);
  if (d.widths.hidden % 2 != 0) r.fail("d_model", "sinusoids need an even width");
  return d;
}

/// Qwen2_5OmniTextConfig.
inline QwenVlTextConfig read_qwen2_5_omni_text(const Reader& t) {
  check_part(t, "qwen2_5_omni_text");
  QwenVlTextConfig d;
  d.layers.hidden = 3584;
  d.layers.intermediate = 18944;
  d.layers.layers = d.layers.heads = 28;
  d.layers.kv_heads = 4;
  return read_qwen_vl_text(t, d, {.kv_heads = 4, .window = 32768, .first_window_layer = 28});
}

/// The thinker of `r`, which is its config or one that holds it.
inline Vlm qwen2_5_omni(const Reader& r, const char* type, bool whole) {
  Qwen2_5OmniFamily f;
  f.whole = whole;
  f.audio = read_qwen2_5_omni_audio(r.object("audio_config"));
  const Reader v = r.object("vision_config");
  check_part(v, "qwen2_5_omni_vision_encoder");
  f.vision = read_qwen2_5_tower(v, f.vision);
  f.language = read_qwen2_5_omni_text(r.object("text_config"));
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = type};
  m.image_processor = qwen2_5_processor(f.vision);
  m.native = {448, 448};
  // The released preprocessor_config.json fills clips up to 300 seconds.
  m.audio = audio::FilledClips{.mel = {.chunk_samples = 4800000, .mels = f.audio.mels}, .layers_see_padding = false};
  m.family = std::move(f);
  return m;
}

inline Vlm read_qwen2_5_omni_thinker(const Reader& r) { return qwen2_5_omni(r, "qwen2_5_omni_thinker", false); }
inline Vlm read_qwen2_5_omni(const Reader& r) {
  return qwen2_5_omni(r.object("thinker_config"), "qwen2_5_omni", r.boolean("enable_audio_output", true));
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen2_5Omni {
  static constexpr std::string_view folder = "qwen2_5_omni";
  static constexpr std::array types{
      json::ModelType{.type = "qwen2_5_omni_thinker",
                      .read = json::hf::read_qwen2_5_omni_thinker,
                      .recorder = json::not_recorded,
                      .text_part = "qwen2_5_omni_text"},
      json::ModelType{.type = "qwen2_5_omni", .read = json::hf::read_qwen2_5_omni, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Qwen2_5Vl>;
};

}  // namespace vlmest::family
