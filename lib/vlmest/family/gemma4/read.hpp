// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma4/unified.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/gemma4.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/json/processor/gemma4.hpp>
#include <vlmest/nn/audio/gemma4_rule.hpp>
#include <vlmest/nn/vlm.hpp>

/// Gemma 4 out of a Hugging Face config: transformers 5.17, models/gemma4/configuration_gemma4.py and
/// models/gemma4_unified/configuration_gemma4_unified.py.
namespace vlmest::json::hf {

/// Layers at the end that take the keys of earlier ones of their type.
inline void read_shared_layers(const Reader& r, Gemma4TextConfig& d) {
  d.shared = r.integer("num_kv_shared_layers", 0, 0, 1024);
  if (d.shared >= d.layers)
    r.fail("num_kv_shared_layers", "at least one of the " + std::to_string(d.layers) + " layers needs keys of its own");
  for (std::int64_t i = d.first_shared(); i < d.layers; ++i) {
    std::int64_t from = 0;
    while (from < d.first_shared() && d.slides(from) != d.slides(i)) ++from;
    if (from == d.first_shared())
      r.fail("num_kv_shared_layers",
             "layer " + std::to_string(i) + " shares keys with an earlier layer of its type, but there is none");
  }
}

/// What both classes' text configs share; `d` holds the class's defaults, `bidirectional` what an absent
/// use_bidirectional_attention means.
inline Gemma4TextConfig gemma4_text(const Reader& r, Gemma4TextConfig d, std::string_view bidirectional) {
  d = text_model(r, std::move(d), d.kv_heads, d.head_dim, "hidden_activation", "gelu_pytorch_tanh");
  d.attention_bias = r.boolean("attention_bias", false);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.double_wide = r.boolean("use_double_wide_mlp", false);
  d.keys_as_values = r.boolean("attention_k_eq_v", false);
  read_gemma4_heads(r, d);
  read_gemma4_layer_types(r, d);
  read_shared_layers(r, d);
  check_gemma4_rope(r, d.sliding);
  d.blocks_of_images = read_blocks_of_images(r, bidirectional);
  return d;
}

/// Gemma4TextConfig.
inline Gemma4TextConfig read_gemma4_text(const Reader& r) {
  check_part(r, "gemma4_text");
  Gemma4TextConfig d = gemma4_text(r, {}, "");
  if (r.is_null("hidden_size_per_layer_input")) d.per_layer = 0;
  d.per_layer = r.integer("hidden_size_per_layer_input", d.per_layer, 0, 1 << 20);
  d.per_layer_vocab = r.integer("vocab_size_per_layer_input", d.per_layer_vocab);
  if (r.boolean("enable_moe_block", false)) read_gemma4_experts(r, d);
  return d;
}

/// Gemma4UnifiedTextConfig: no inputs per layer, no experts.
inline Gemma4TextConfig read_gemma4_unified_text(const Reader& r) {
  check_part(r, "gemma4_unified_text");
  return gemma4_text(r, {.window = 1024, .per_layer = 0}, "vision");
}

/// Gemma4AudioConfig.
inline Gemma4Audio read_gemma4_audio(const Reader& r) {
  check_part(r, "gemma4_audio");
  Gemma4Audio a;
  a.hidden = r.integer("hidden_size", a.hidden, 1, 1 << 20);
  a.layers = r.layers("num_hidden_layers", a.layers);
  a.heads = r.integer("num_attention_heads", a.heads, 1, 1 << 16);
  divides(r, "num_attention_heads", a.hidden, a.heads);
  const auto channels = r.integers("subsampling_conv_channels", {a.channels[0], a.channels[1]});
  if (channels.size() != 2 || channels[0] < 4 || channels[1] < 1 || channels[0] > 1 << 16 || channels[1] > 1 << 16)
    r.fail("subsampling_conv_channels", "expected the channels of two convolutions");
  a.channels = {channels[0], channels[1]};
  a.kernel = r.integer("conv_kernel_size", a.kernel, 1, 1 << 10);
  a.out = r.integer("output_proj_dims", a.out, 1, 1 << 20);
  a.clips = r.boolean("use_clipped_linears", true);
  a.block = r.integer("attention_chunk_size", a.block, 1, 1 << 16);
  a.left = r.integer("attention_context_left", a.left, 1, 1 << 16);
  a.right = r.integer("attention_context_right", a.right, 0, 1 << 16);
  a.activation = parse_activation(r.string("hidden_act", "silu"));
  return a;
}

/// model_type "gemma4".
inline Vlm read_gemma4(const Reader& r) {
  Gemma4Family f;
  const Reader text = r.object("text_config");
  f.vision = read_gemma4_vision(required_vision(r));
  f.language = read_gemma4_text(text);
  if (r.given("audio_config")) f.audio = read_gemma4_audio(r.object("audio_config"));
  f.tied = r.boolean("tie_word_embeddings", true);
  f.logits = read_gemma4_step(text);
  Vlm m{.type = "gemma4"};
  m.image_processor = image_processor::Gemma4{.patch_size = f.vision.patch_size, .pool = f.vision.pool};
  m.native = {768, 768};
  if (f.audio) m.audio = audio::Gemma4Clips{};
  m.family = std::move(f);
  return m;
}

/// model_type "gemma4_unified".
inline Vlm read_gemma4_unified(const Reader& r) {
  Gemma4UnifiedFamily f;
  const Reader text = r.object("text_config"), v = required_vision(r);
  check_part(v, "gemma4_unified_vision");
  f.vision.patch_size = v.side("patch_size", f.vision.patch_size);
  f.vision.pool = v.integer("pooling_kernel_size", f.vision.pool, 1, 64);
  f.vision.hidden = v.integer("mm_embed_dim", f.vision.hidden, 1, 1 << 20);
  f.vision.positions = v.integer("mm_posemb_size", f.vision.positions, 1, 1 << 24);
  if (const std::int64_t out = v.integer("output_proj_dims", 3840, 1, 1 << 20); out != f.vision.hidden)
    v.fail("output_proj_dims",
           std::to_string(out) + ", but the embedded patches are " + std::to_string(f.vision.hidden) + " wide",
           "both must be equal");
  f.language = read_gemma4_unified_text(text);
  if (r.given("audio_config")) {
    const Reader a = r.object("audio_config");
    check_part(a, "gemma4_unified_audio");
    f.audio = a.integer("audio_embed_dim", 640, 1, 1 << 20);
  }
  f.tied = r.boolean("tie_word_embeddings", true);
  f.logits = read_gemma4_step(text);
  Vlm m{.type = "gemma4_unified"};
  m.image_processor = image_processor::Gemma4{.patch_size = f.vision.patch_size, .pool = f.vision.pool, .merged = true};
  m.native = {768, 768};
  m.family = std::move(f);
  return m;
}

inline Vlm gemma4_lm(const Reader& r, std::string_view type, Gemma4TextConfig language) {
  Gemma4LmFamily f;
  f.language = std::move(language);
  f.tied = r.boolean("tie_word_embeddings", true);
  f.logits = read_gemma4_step(r);
  return text_only(type, std::move(f));
}

/// model_type "gemma4_text": Gemma4ForCausalLM.
inline Vlm read_gemma4_lm(const Reader& r) { return gemma4_lm(r, "gemma4_text", read_gemma4_text(r)); }

/// model_type "gemma4_unified_text": Gemma4UnifiedForCausalLM.
inline Vlm read_gemma4_unified_lm(const Reader& r) {
  return gemma4_lm(r, "gemma4_unified_text", read_gemma4_unified_text(r));
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Gemma4 {
  static constexpr std::string_view folder = "gemma4";
  static constexpr std::array types{
      json::ModelType{
          .type = "gemma4", .read = json::hf::read_gemma4, .recorder = json::RecorderInputs{"positioned.gemma4", 768}},
      json::ModelType{.type = "gemma4_unified",
                      .read = json::hf::read_gemma4_unified,
                      .recorder = json::RecorderInputs{"positioned.gemma4_unified", 768}},
      json::ModelType{.type = "gemma4_text", .read = json::hf::read_gemma4_lm, .recorder = json::not_recorded},
      json::ModelType{
          .type = "gemma4_unified_text", .read = json::hf::read_gemma4_unified_lm, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Gemma4>;
};

}  // namespace vlmest::family
