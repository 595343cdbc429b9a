// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/family/janus/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/padded_square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// JanusVisionConfig, without what its aligner reads of it.
inline JanusVision read_janus_vision(const Reader& r) {
  JanusVision d = vit(r, JanusVision{}, "gelu");
  r.without_effect({"num_image_tokens"});
  const double inner = static_cast<double>(d.hidden) * r.number("mlp_ratio", 4.0);
  if (!(inner >= 1.0 && inner < 1 << 24)) r.fail("mlp_ratio", "must leave the MLP a width");
  d.intermediate = static_cast<std::int64_t>(inner);
  d.attention_bias = r.boolean("attention_bias", true);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.projection_dropout = read_dropout(r, "projection_dropout", 0.0);
  d.hidden_dropout = read_dropout(r, "hidden_dropout_rate", 0.0);
  if (r.boolean("use_qk_norm", false))
    r.fail("use_qk_norm", "transformers norms heads by a layer as wide as all of them together and stops",
           "set it to false");
  return d;
}

/// JanusVQVAEConfig.
inline JanusGenerator read_janus_generator(const Reader& r) {
  JanusGenerator d;
  constexpr std::int64_t most = 1 << 20;
  d.embed = r.integer("embed_dim", d.embed, 1, most);
  d.embeddings = r.integer("num_embeddings", d.embeddings);
  d.latent = r.integer("latent_channels", d.latent, 1, most);
  d.double_latent = r.boolean("double_latent", false);
  d.in = r.integer("in_channels", d.in, 1, most);
  d.out = r.integer("out_channels", d.out, 1, most);
  d.base = r.integer("base_channels", d.base, 1, most);
  d.multipliers = r.integers("channel_multiplier", d.multipliers);
  d.res_blocks = r.integer("num_res_blocks", d.res_blocks, 1, 1024);
  d.projection = r.integer("projection_dim", d.projection, 1, most);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.image_token_embed = r.integer("image_token_embed_dim", d.image_token_embed, 1, most);
  if (d.multipliers.empty() || d.multipliers.size() > 64)
    r.fail("channel_multiplier", "expected one for each of 1 to 64 levels");
  for (const std::int64_t m : d.multipliers)
    if (m < 1 || m > most || checked_mul(d.base, m) % 32 != 0 || d.base % 32 != 0)
      r.fail("channel_multiplier", "channels are normed in 32 groups, which base_channels times each must divide into",
             "give base_channels as a multiple of 32");
  return d;
}

/// model_type "janus": transformers 5.17, models/janus/configuration_janus.py.
inline Vlm read_janus(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  JanusFamily f;
  f.vision = read_janus_vision(v);
  f.projection = v.integer("projection_dim", f.projection, 1, 1 << 20);
  f.depth = v.integer("depth", f.depth, 1, 1024);
  f.generator = read_janus_generator(r.object("vq_config"));
  f.language = read_decoder(t, t.string("model_type", "llama"));
  if (width(f.language) != f.projection)
    v.fail(
        "projection_dim",
        std::to_string(f.projection) + ", but the language model's hidden_size is " + std::to_string(width(f.language)),
        "features take the place of its embeddings: give the same width");
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "janus"};
  m.image_processor =
      image_processor::PaddedSquare{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .markers = 2};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Janus {
  static constexpr std::string_view folder = "janus";
  static constexpr std::array types{
      json::ModelType{.type = "janus", .read = json::hf::read_janus, .recorder = json::RecorderInputs{"square.janus"}}};
  using Rules = json::Rules<image_processor::PaddedSquare>;
};

}  // namespace vlmest::family
