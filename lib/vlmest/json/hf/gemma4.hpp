// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/hf/gemma_text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/gemma4_attention.hpp>
#include <vlmest/nn/vision/gemma4.hpp>

/// What the configs of Gemma 4 and DiffusionGemma share (transformers 5.17, models/gemma4/configuration_gemma4.py,
/// models/gemma4_unified, models/diffusion_gemma).
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
    // Proportional frequencies are as many as without it, those beyond it 0; the class's own do not ask.
    if (rope.number("partial_rotary_factor", 1.0) != 1.0 && type != "default" && type != "proportional")
      rope.fail("partial_rotary_factor", "fewer frequencies than the heads have channels for are not modelled",
                "leave it out, or set rope_type to proportional");
  }
}

/// Gemma4TextConfig.__post_init__: every sixth layer is full where layer_types is absent, and the last one always.
inline void read_gemma4_layer_types(const Reader& r, Gemma4TextConfig& d) {
  check_layer_types(r);
  d.sliding = sliding_layers(r, d.layers, std::int64_t{6});
  d.sliding.back() = false;
  if (r.is_null("sliding_window")) r.fail("sliding_window", "null, but the class takes an integer");
  d.window = r.integer("sliding_window", d.window, 1, std::int64_t{1} << 32);
}

/// Heads of the full layers: `global_head_dim` and, where keys are values, `num_global_key_value_heads`.
inline void read_gemma4_heads(const Reader& r, Gemma4TextConfig& d) {
  if (r.given("per_layer_config"))
    r.fail("per_layer_config", "heads that differ from layer to layer are not modelled",
           "give head_dim and global_head_dim instead");
  if (r.is_null("global_head_dim")) r.fail("global_head_dim", "null, but the class takes an integer");
  d.full_head_dim = r.integer("global_head_dim", 512, 2, 1 << 16);
  if (d.full_head_dim % 2 != 0) r.fail("global_head_dim", "rotary embeddings need an even head size");
  d.full_kv_heads = d.keys_as_values ? r.integer("num_global_key_value_heads", d.kv_heads, 1, 1 << 16) : d.kv_heads;
  if (d.heads % d.full_kv_heads != 0)
    r.fail(
        "num_global_key_value_heads",
        std::to_string(d.heads) + " query heads cannot share " + std::to_string(d.full_kv_heads) + " key-value heads",
        "num_attention_heads must be a multiple of it");
}

/// use_bidirectional_attention: whether the tokens of a picture see each other; `absent` is what the class takes.
inline bool read_blocks_of_images(const Reader& r, std::string_view absent) {
  const std::string both =
      r.is_null("use_bidirectional_attention") ? std::string() : r.string("use_bidirectional_attention", absent);
  if (both == "all")
    r.fail("use_bidirectional_attention", "an encoder's masks are not modelled", "give \"vision\" or null");
  if (!both.empty() && both != "vision") r.fail("use_bidirectional_attention", "expected \"vision\", \"all\" or null");
  return both == "vision";
}

/// The experts beside every layer's MLP.
inline void read_gemma4_experts(const Reader& r, Gemma4TextConfig& d) {
  d.moe = {.hidden = d.hidden, .activation = d.activation};
  d.moe.inner = r.integer_required("moe_intermediate_size", 1, 1 << 24);
  d.moe.experts = r.integer_required("num_experts", 1, 1 << 20);
  d.moe.top_k = r.integer_required("top_k_experts", 1, 1 << 20);
  if (d.moe.top_k > d.moe.experts)
    r.fail("top_k_experts", "more than the " + std::to_string(d.moe.experts) + " experts");
}

/// Gemma4VisionConfig. Its projections have no biases whatever attention_bias says.
inline Gemma4Vision read_gemma4_vision(const Reader& r) {
  check_part(r, "gemma4_vision");
  r.without_effect({"attention_bias"});
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

}  // namespace vlmest::json::hf
