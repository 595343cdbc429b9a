// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/family/molmo2/family.hpp>
#include <vlmest/family/molmo2/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// Molmo 2 out of its config.json: allenai/molmo2 (commit f3cb108), olmo/hf_model/configuration_molmo2.py, which the
/// checkpoints bring along.
namespace vlmest::json::hf {

/// Dropout of the released models is none, and what it adds to training was not compared.
inline void refuse_molmo_dropout(const Reader& r, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (read_dropout(r, key, 0.0)) r.fail(key, "dropout of Molmo 2 is not modelled", "give 0.0, as released");
}

/// Of a ViTMultiHeadDotProductAttention that writes `width` channels. What attn_implementation says, from_pretrained's
/// own argument says over.
inline Molmo2AttentionConfig read_molmo_attention(const Reader& r, std::int64_t in, std::int64_t width) {
  r.without_effect({"attn_implementation"});
  Molmo2AttentionConfig a{.in = in};
  a.heads = r.integer("num_attention_heads", a.heads, 1, 1 << 16);
  if (r.integer("num_key_value_heads", 16, 1, 1 << 16) != a.heads)
    r.fail("num_key_value_heads", "heads of queries that share keys are not modelled here",
           "give as many as num_attention_heads");
  a.head_dim = r.integer("head_dim", a.head_dim, 1, 1 << 16);
  check_heads_fill(r, width, a.heads, a.head_dim);
  a.wide = !r.is_null("float32_attention") && r.boolean("float32_attention", true);  // None is false
  refuse_molmo_dropout(r, {"attention_dropout", "residual_dropout"});
  return a;
}

/// Molmo2VitConfig.
inline Molmo2Vision read_molmo_vision(const Reader& r) {
  refuse_null(r, {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                  "head_dim", "image_patch_size", "image_num_pos"});
  Molmo2Vision g;
  g.hidden = r.integer("hidden_size", g.hidden, 1, 1 << 20);
  g.intermediate = r.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.layers = r.layers("num_hidden_layers", g.layers);
  g.image_size = r.side("image_default_input_size", g.image_size);
  g.patch_size = r.side("image_patch_size", g.patch_size);
  if (g.patch_size > g.image_size) r.fail("image_patch_size", "larger than the image");
  if (r.integer("image_num_pos", 577, 1, 1 << 24) != g.patches())
    r.fail("image_num_pos",
           "the table of positions is not of the " + std::to_string(g.patches()) +
               " patches of image_default_input_size, to which it would be resampled: that is not modelled",
           "give " + std::to_string(g.patches()));
  g.activation = parse_activation(r.string("hidden_act", "gelu_pytorch_tanh"));
  g.attention = read_molmo_attention(r, g.hidden, g.hidden);
  return g;
}

/// vit_layers of Molmo2AdapterConfig: numbers of layers, negative ones from the end.
inline std::vector<std::int64_t> read_vit_layers(const Reader& r, std::int64_t layers) {
  std::vector<std::int64_t> read = r.integers("vit_layers", {-3, -9});
  if (read.empty()) r.fail("vit_layers", "names no layer");
  for (std::int64_t& layer : read) {
    if (layer >= layers || layer < -layers) r.fail("vit_layers", "the tower has " + std::to_string(layers) + " layers");
    if (layer < 0) layer += layers;
  }
  return read;
}

/// Molmo2AdapterConfig; `in` is the width of what is read of the tower, `out` the language model's.
inline Molmo2Adapter read_molmo_adapter(const Reader& r, std::int64_t in, std::int64_t out) {
  refuse_null(r, {"hidden_size", "intermediate_size", "text_hidden_size", "num_attention_heads", "num_key_value_heads",
                  "head_dim"});
  Molmo2Adapter a;
  const std::int64_t width = r.integer("hidden_size", 1152, 1, 1 << 20);
  a.attention = read_molmo_attention(r, in, width);
  a.intermediate = r.integer("intermediate_size", a.intermediate, 1, 1 << 24);
  a.activation = parse_activation(r.string("hidden_act", "silu"));
  a.masked = r.boolean("pooling_attention_mask", false);
  if (const std::int64_t text = r.integer("text_hidden_size", 3584, 1, 1 << 20); text != out)
    r.fail("text_hidden_size", std::to_string(text) + ", but features are added to embeddings of the language model",
           "give text_config.hidden_size");
  refuse_molmo_dropout(r, {"image_feature_dropout"});
  return a;
}

/// Which norm queries and keys get: qk_norm_type "qwen3" is of each head, any other one of all together.
inline Molmo2Text::QkNorm read_qk_norm(const Reader& r) {
  const std::string type = r.string("qk_norm_type", "olmo");
  if (!r.boolean("use_qk_norm", false)) return Molmo2Text::QkNorm::off;
  return type == "qwen3" ? Molmo2Text::QkNorm::heads : Molmo2Text::QkNorm::whole;
}

/// Molmo2TextConfig.
inline Molmo2Text read_molmo_text(const Reader& r) {
  r.without_effect({"attn_implementation"});
  refuse_null(
      r, {"hidden_size", "num_attention_heads", "head_dim", "vocab_size", "num_hidden_layers", "intermediate_size"});
  Molmo2Text d = text_model(r, Molmo2Text{}, 4, 128);
  if (r.is_null("additional_vocab_size"))
    r.fail("additional_vocab_size", "null: embeddings in one parameter are not modelled", "give 128, as released");
  d.extra_vocab = r.integer("additional_vocab_size", d.extra_vocab, 1, 1 << 24);
  d.qkv_bias = !r.is_null("qkv_bias") && r.boolean("qkv_bias", d.qkv_bias);
  d.qk_norm = read_qk_norm(r);
  d.norm_after = r.boolean("norm_after", false);
  check_static_rope(r);
  if (r.given("rope_scaling_layers")) {
    d.two_ropes = true;
    d.scaled.assign(static_cast<std::size_t>(d.layers), false);
    for (const std::int64_t layer : r.integers("rope_scaling_layers", {}))
      if (layer >= 0 && layer < d.layers) d.scaled[static_cast<std::size_t>(layer)] = true;
  }
  if (r.boolean("tie_word_embeddings", false))
    r.fail("tie_word_embeddings", "true, but the embeddings have rows that the output head lacks", "give false");
  refuse_molmo_dropout(r, {"embedding_dropout", "attention_dropout", "residual_dropout"});
  return d;
}

/// model_type "molmo2": Molmo2ForConditionalGeneration. Numbers of tokens, and what the video's frames are marked by,
/// change nothing.
inline Vlm read_molmo2(const Reader& r) {
  r.without_effect(
      {"image_patch_id", "image_high_res_id", "image_low_res_id", "image_col_id", "use_frame_special_tokens"});
  const Reader adapter = r.object("adapter_config");
  Molmo2Family f;
  f.language = read_molmo_text(r.object("text_config"));
  f.vision = read_molmo_vision(r.object("vit_config"));
  f.vision.read = read_vit_layers(adapter, f.vision.layers);
  f.adapter = read_molmo_adapter(adapter, f.vision.joined(), f.language.hidden);
  if (r.boolean("tie_word_embeddings", false))
    r.fail("tie_word_embeddings", "true, but the embeddings have rows that the output head lacks", "give false");
  Vlm m{.type = "molmo2"};
  m.image_processor = image_processor::Molmo2{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Molmo2& rule) { image.max_tiles(rule.max_tiles); }

/// Two numbers of a processor's file.
inline Grid read_pair(ProcessorKeys& k, const char* key, Grid absent, std::int64_t low) {
  if (!k.given(key)) return absent;
  const nlohmann::json& v = k.value(key);
  const auto within = [&](const nlohmann::json& n) {
    return n.is_number_integer() && n.get<std::int64_t>() >= low && n.get<std::int64_t>() <= 1024;
  };
  if (!v.is_array() || v.size() != 2 || !within(v[0]) || !within(v[1]))
    k.fail(key, "expected two numbers from " + std::to_string(low) + " to 1024");
  return {v[0].get<std::int64_t>(), v[1].get<std::int64_t>()};
}

/// Molmo2ImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::Molmo2& rule) {
  k.square("size", k.size("size"), rule.image_size);
  k.same("patch_size", rule.patch_size, "vit_config.image_patch_size");
  rule.max_tiles = k.integer("max_crops", 8, 1, image_processor::max_tile_count);
  rule.margins = read_pair(k, "overlap_margins", {4, 4}, 0);
  rule.pool = read_pair(k, "pooling_size", {2, 2}, 1);
}
/// Molmo2Processor: use_single_crop_col_tokens is image_use_col_tokens where it says nothing.
inline void read_outer_keys(ProcessorKeys& k, image_processor::Molmo2& rule) {
  rule.columns = k.boolean("image_use_col_tokens", true);
  rule.whole_columns = k.boolean("use_single_crop_col_tokens", rule.columns);
  k.must_be("use_low_res_token_for_global_crops", false);
  k.ignore({"use_single_crop_start_token", "video_use_col_tokens", "use_frame_special_tokens", "time_mode"});
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Molmo2 {
  static constexpr std::string_view folder = "molmo2";
  static constexpr std::array types{json::ModelType{
      .type = "molmo2", .read = json::hf::read_molmo2, .recorder = json::not_recorded, .remote_code = true}};
  using Rules = json::Rules<image_processor::Molmo2>;
};

}  // namespace vlmest::family
