// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma4/rule.hpp>
#include <vlmest/family/gemma4/unified.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/gemma_text.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/audio/gemma4_rule.hpp>
#include <vlmest/nn/vlm.hpp>

/// Gemma 4 out of a Hugging Face config: transformers 5.17, models/gemma4/configuration_gemma4.py and
/// models/gemma4_unified/configuration_gemma4_unified.py.
namespace vlmest::json::hf {

/// rope_parameters: one entry for each type of layer that there is. The types that are known have frequencies that do
/// not depend on the input; their numbers change no byte.
inline void check_gemma4_rope(const Reader& r, const std::vector<bool>& sliding) {
  if (!r.given("rope_parameters")) return;
  const Reader all = r.object("rope_parameters");
  for (const bool slides : {false, true}) {
    if (std::find(sliding.begin(), sliding.end(), slides) == sliding.end()) continue;
    const char* key = slides ? "sliding_attention" : "full_attention";
    if (!all.given(key)) all.fail(key, "missing", "the model has layers of this type and cannot run without");
    const Reader rope = all.object(key);
    const std::string type = rope.string("rope_type", rope.string("type", "default"));
    if (type != "default" && type != "proportional" && type != "linear" && type != "llama3" && type != "yarn")
      rope.fail("rope_type", "unknown '" + type + "'", "known: default, proportional, linear, llama3, yarn");
  }
}

/// Gemma4TextConfig.__post_init__: every sixth layer is full where layer_types is absent, and the last one always.
inline void read_gemma4_layers(const Reader& r, Gemma4TextConfig& d) {
  check_layer_types(r);
  d.sliding = sliding_layers(r, d.layers, std::int64_t{6});
  d.sliding.back() = false;
  if (r.is_null("sliding_window")) r.fail("sliding_window", "null, but the class takes an integer");
  d.window = r.integer("sliding_window", d.window, 1, std::int64_t{1} << 32);
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

/// Heads of the full layers, which `global_head_dim` and, where keys are values, `num_global_key_value_heads` change.
inline void read_gemma4_heads(const Reader& r, Gemma4TextConfig& d) {
  if (r.given("per_layer_config"))
    r.fail("per_layer_config", "heads that differ from layer to layer are not modelled",
           "give head_dim and global_head_dim instead");
  if (r.is_null("global_head_dim")) r.fail("global_head_dim", "null, but the class takes an integer");
  d.full_head_dim = r.integer("global_head_dim", 512, 2, 1 << 16);
  if (d.full_head_dim % 2 != 0) r.fail("global_head_dim", "rotary embeddings need an even head size");
  d.keys_as_values = r.boolean("attention_k_eq_v", false);
  d.full_kv_heads = d.keys_as_values ? r.integer("num_global_key_value_heads", d.kv_heads, 1, 1 << 16) : d.kv_heads;
  if (d.heads % d.full_kv_heads != 0)
    r.fail(
        "num_global_key_value_heads",
        std::to_string(d.heads) + " query heads cannot share " + std::to_string(d.full_kv_heads) + " key-value heads",
        "num_attention_heads must be a multiple of it");
}

/// What both classes' text configs share; `d` holds the class's defaults, `bidirectional` what an absent
/// use_bidirectional_attention means.
inline Gemma4TextConfig gemma4_text(const Reader& r, Gemma4TextConfig d, std::string_view bidirectional) {
  d = text_model(r, std::move(d), d.kv_heads, d.head_dim, "hidden_activation", "gelu_pytorch_tanh");
  d.attention_bias = r.boolean("attention_bias", false);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.double_wide = r.boolean("use_double_wide_mlp", false);
  read_gemma4_heads(r, d);
  read_gemma4_layers(r, d);
  check_gemma4_rope(r, d.sliding);
  const std::string both =
      r.is_null("use_bidirectional_attention") ? std::string() : r.string("use_bidirectional_attention", bidirectional);
  if (both == "all")
    r.fail("use_bidirectional_attention", "an encoder's masks are not modelled", "give \"vision\" or null");
  if (!both.empty() && both != "vision") r.fail("use_bidirectional_attention", "expected \"vision\", \"all\" or null");
  d.blocks_of_images = both == "vision";
  return d;
}

/// Gemma4TextConfig.
inline Gemma4TextConfig read_gemma4_text(const Reader& r) {
  check_part(r, "gemma4_text");
  Gemma4TextConfig d = gemma4_text(r, {}, "");
  if (r.is_null("hidden_size_per_layer_input")) d.per_layer = 0;
  d.per_layer = r.integer("hidden_size_per_layer_input", d.per_layer, 0, 1 << 20);
  d.per_layer_vocab = r.integer("vocab_size_per_layer_input", d.per_layer_vocab);
  if (r.boolean("enable_moe_block", false)) {
    d.moe = {.hidden = d.hidden, .activation = d.activation};
    d.moe.inner = r.integer_required("moe_intermediate_size", 1, 1 << 24);
    d.moe.experts = r.integer_required("num_experts", 1, 1 << 20);
    d.moe.top_k = r.integer_required("top_k_experts", 1, 1 << 20);
    if (d.moe.top_k > d.moe.experts)
      r.fail("top_k_experts", "more than the " + std::to_string(d.moe.experts) + " experts");
  }
  return d;
}

/// Gemma4UnifiedTextConfig: no inputs per layer, no experts.
inline Gemma4TextConfig read_gemma4_unified_text(const Reader& r) {
  check_part(r, "gemma4_unified_text");
  return gemma4_text(r, {.window = 1024, .per_layer = 0}, "vision");
}

/// Gemma4VisionConfig. Its projections have no biases whatever attention_bias says.
inline Gemma4Vision read_gemma4_vision(const Reader& r) {
  check_part(r, "gemma4_vision");
  Gemma4Vision v;
  v.hidden = r.integer("hidden_size", v.hidden, 1, 1 << 20);
  v.intermediate = r.integer("intermediate_size", v.intermediate, 1, 1 << 24);
  v.layers = r.layers("num_hidden_layers", v.layers);
  const Heads h = heads(r, v.hidden, v.heads, v.kv_heads, v.head_dim);
  v.heads = h.heads;
  v.kv_heads = h.kv_heads;
  v.head_dim = h.head_dim;
  if (v.head_dim % 4 != 0) r.fail("head_dim", "heads that turn by column and row need a multiple of 4 channels");
  v.activation = parse_activation(r.string("hidden_activation", "gelu_pytorch_tanh"));
  v.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  v.patch_size = r.side("patch_size", v.patch_size);
  v.pool = r.integer("pooling_kernel_size", v.pool, 2, 64);
  v.positions = r.integer("position_embedding_size", v.positions, 1, 1 << 24);
  v.clips = r.boolean("use_clipped_linears", false);
  v.standardize = r.boolean("standardize", false);
  if (r.given("rope_parameters")) {
    const Reader rope = r.object("rope_parameters");
    const std::string type = rope.string("rope_type", "axial");
    if (type != "default" && type != "axial")
      rope.fail("rope_type", "'" + type + "', which the class refuses", "known: default, axial");
  }
  return v;
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

/// final_logit_softcapping of the language model's config: any number caps.
inline LogitStep read_gemma4_step(const Reader& text) {
  text.number("final_logit_softcapping", 1.0);
  return text.given("final_logit_softcapping") ? LogitStep::softcap : LogitStep::as_is;
}

/// Without it the class has no tower, and takes no pictures.
inline Reader required_vision(const Reader& r) {
  if (!r.given("vision_config"))
    r.fail("vision_config", "missing: the model would take no pictures",
           "give the text_config alone, as its own config.json");
  return r.object("vision_config");
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

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Gemma4& rule) {
  image.number("max_soft_tokens", rule.soft_tokens, 1, 1 << 16);
}
/// transformers 5.17 image_processing_gemma4.py. image_seq_length of either file decides nothing: the counts are those
/// of the resized pictures.
inline void read_image_keys(ProcessorKeys& k, image_processor::Gemma4& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("pooling_kernel_size", rule.pool, "vision_config.pooling_kernel_size");
  rule.soft_tokens = k.integer("max_soft_tokens", rule.soft_tokens, 1, 1 << 16);
  k.ignore({"image_seq_length", "size"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Gemma4&) {
  k.ignore({"image_seq_length", "audio_seq_length", "audio_ms_per_token"});
}

}  // namespace vlmest::json

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
