// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen3_omni_moe/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/audio/exact_rule.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/qwen3_omni_moe/configuration_qwen3_omni_moe.py.
namespace vlmest::json::hf {

/// Qwen3OmniMoeAudioEncoderConfig.
inline Qwen3OmniAudio read_qwen3_omni_audio(const Reader& r) {
  check_part(r, "qwen3_omni_moe_audio_encoder");
  Qwen3OmniAudio d;
  d.widths = read_whisper_widths(r, d.widths);
  d.mels = r.integer("num_mel_bins", d.mels, 1, 1 << 16);
  d.layers = read_whisper_layers(r, d.layers);
  read_chunk_windows(r, "max_source_positions", d);
  d.conv_chunks = r.integer("conv_chunksize", d.conv_chunks, 1, 1 << 20);
  return d;
}

/// Qwen3OmniMoeTextConfig.
inline Qwen3VlTextConfig read_qwen3_omni_text(const Reader& t) {
  check_part(t, "qwen3_omni_moe_text");
  Qwen3VlTextConfig d;
  d.layers = {
      .vocab = 3584, .hidden = 2048, .intermediate = 18944, .layers = 28, .heads = 28, .kv_heads = 4, .qk_norm = true};
  d.layers = text_model(t, d.layers, 4, std::nullopt);
  read_qwen3_attention(t, d.layers);
  d.sections = three_sections(t, d.sections);
  MoeConfig moe{.hidden = d.layers.hidden, .activation = d.layers.activation};
  moe.normalised = t.boolean("norm_topk_prob", true);
  d.moe = read_experts(t, moe, 768, 128, 8);
  d.sparse = sparse_layers(t, d.layers.layers, d.moe);
  if (t.boolean("output_router_logits", false))
    t.fail("output_router_logits", "the loss over the router's logits is not modelled", "set it to false");
  return d;
}

/// The thinker of `r`, which is its config or one that holds it.
inline Vlm qwen3_omni(const Reader& r, const char* type, bool whole) {
  const Reader v = r.object("vision_config");
  check_part(v, "qwen3_omni_moe_vision_encoder");
  Qwen3VlVision tower = read_qwen3_vl_vision(v);
  tower.omni = true;
  Vlm m = around_qwen3_tower<Qwen3OmniFamily>(r, type, std::move(tower), read_qwen3_omni_text(r.object("text_config")));
  Qwen3OmniFamily& f = get<Qwen3OmniFamily>(m.family);
  f.audio = read_qwen3_omni_audio(r.object("audio_config"));
  f.whole = whole;
  // Those of the released preprocessor_config.json.
  get<image_processor::Qwen3Vl>(m.image_processor).budget = {3136, 12845056};
  m.audio = audio::ExactClips{.mel = {.mels = f.audio.mels}, .window = f.audio.window};
  return m;
}

inline Vlm read_qwen3_omni_moe_thinker(const Reader& r) { return qwen3_omni(r, "qwen3_omni_moe_thinker", false); }
inline Vlm read_qwen3_omni_moe(const Reader& r) {
  return qwen3_omni(r.object("thinker_config"), "qwen3_omni_moe", r.boolean("enable_audio_output", true));
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen3Omni {
  static constexpr std::string_view folder = "qwen3_omni_moe";
  static constexpr std::array types{
      json::ModelType{.type = "qwen3_omni_moe_thinker",
                      .read = json::hf::read_qwen3_omni_moe_thinker,
                      .recorder = json::not_recorded,
                      .text_part = "qwen3_omni_moe_text"},
      json::ModelType{.type = "qwen3_omni_moe", .read = json::hf::read_qwen3_omni_moe, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Qwen3Vl>;
};

}  // namespace vlmest::family
