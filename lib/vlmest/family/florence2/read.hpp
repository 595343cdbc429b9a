// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/florence2/family.hpp>
#include <vlmest/family/florence2/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// models/bart/configuration_bart.py.
inline BartConfig read_bart(const Reader& r) {
  constexpr std::int64_t wide = 1 << 24;
  BartConfig d;
  r.without_effect({"scale_embedding"});  // by one or by a root: multiplied all the same
  d.vocab = r.integer("vocab_size", d.vocab);
  const char* const heads = r.either("encoder_attention_heads", "num_attention_heads");
  d.hidden = r.integer(r.either("d_model", "hidden_size"), d.hidden, 1, 1 << 20);
  d.encoder_layers = r.layers(r.either("encoder_layers", "num_hidden_layers"), d.encoder_layers);
  d.decoder_layers = r.layers("decoder_layers", d.decoder_layers);
  d.encoder_intermediate = r.integer("encoder_ffn_dim", d.encoder_intermediate, 1, wide);
  d.decoder_intermediate = r.integer("decoder_ffn_dim", d.decoder_intermediate, 1, wide);
  d.encoder_heads = r.integer(heads, d.encoder_heads, 1, 1 << 16);
  d.decoder_heads = r.integer("decoder_attention_heads", d.decoder_heads, 1, 1 << 16);
  d.positions = r.integer("max_position_embeddings", d.positions, 1, wide);
  d.dropout = read_dropout(r, "dropout", 0.1);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.activation_dropout = read_dropout(r, "activation_dropout", 0.0);
  d.activation = parse_activation(r.string("activation_function", "gelu"));
  divides(r, heads, d.hidden, d.encoder_heads);
  divides(r, "decoder_attention_heads", d.hidden, d.decoder_heads);
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"})
    if (read_dropout(r, key, 0.0)) r.fail(key, "layers that a draw leaves out are not modelled", "set it to 0");
  if (!r.boolean("tie_word_embeddings", true))
    r.fail("tie_word_embeddings", "tables of their own for encoder and decoder are not modelled", "leave it out");
  return d;
}

/// models/florence2/configuration_florence2.py, Florence2VisionConfig: lists with an entry for each stage.
inline DavitVision read_davit(const Reader& r) {
  DavitVision d;
  const auto widths = r.integers("embed_dim", {128, 256, 512, 1024});
  if (widths.empty() || widths.size() > 64) r.fail("embed_dim", "expected a width for each of 1 to 64 stages");
  const auto list = [&](const char* key, std::vector<std::int64_t> absent, std::int64_t low,
                        std::int64_t high = 1 << 20) {
    auto v = r.integers(key, std::move(absent));
    if (v.size() != widths.size())
      r.fail(key, "expected one entry for each of the " + std::to_string(widths.size()) + " stages");
    for (const std::int64_t n : v)
      if (n < low || n > high) r.fail(key, "an entry is out of range");
    return v;
  };
  const auto width = list("embed_dim", {128, 256, 512, 1024}, 1), depths = list("depths", {1, 1, 9, 1}, 0, 1024),
             heads = list("num_heads", {4, 8, 16, 32}, 1), groups = list("num_groups", {4, 8, 16, 32}, 1),
             kernels = list("patch_size", {7, 3, 3, 3}, 1), strides = list("patch_stride", {4, 2, 2, 2}, 1),
             paddings = list("patch_padding", {3, 1, 1, 1}, 0);
  const std::vector<bool> before = r.booleans("patch_prenorm", {false, true, true, true});
  if (before.size() != widths.size())
    r.fail("patch_prenorm", "expected one entry for each of the " + std::to_string(widths.size()) + " stages");
  for (std::size_t i = 0; i < widths.size(); ++i) {
    divides(r, "num_heads", width[i], heads[i]);
    divides(r, "num_groups", width[i], groups[i]);
    d.stages.push_back({depths[i], width[i], heads[i], groups[i], kernels[i], strides[i], paddings[i], before[i]});
  }
  d.channels = r.integer("in_channels", d.channels, 1, 1 << 10);
  d.window = r.integer("window_size", d.window, 1, 1 << 10);
  d.mlp_ratio = r.number("mlp_ratio", d.mlp_ratio);
  if (!(d.mlp_ratio > 0.0 && d.mlp_ratio <= 1024.0)) r.fail("mlp_ratio", "must lie between 0 and 1024");
  d.qkv_bias = r.boolean("qkv_bias", d.qkv_bias);
  d.drop_path = r.number("drop_path_rate", d.drop_path);
  if (!(d.drop_path >= 0.0 && d.drop_path < 1.0)) r.fail("drop_path_rate", "must lie between 0 and 1");
  d.activation = parse_activation(r.string("activation_function", "gelu"));
  return d;
}

/// model_type "florence2": transformers 5.17, models/florence2/configuration_florence2.py. The processor of the
/// released checkpoints makes squares of 768 pixels.
inline Vlm read_florence2(const Reader& r) {
  r.without_effect({"is_encoder_decoder"});  // it is
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  if (const std::string type = t.string("model_type", "bart"); type != "bart")
    t.fail("model_type", "unknown language model '" + type.substr(0, 64) + "' of Florence-2", "known: bart");
  if (!r.boolean("tie_word_embeddings", true))
    r.fail("tie_word_embeddings", "a head of its own is not modelled", "leave it out");
  Florence2Family f;
  f.vision = read_davit(v);
  f.language = read_bart(t);
  f.projector = {.in = f.vision.stages.back().width,
                 .out = v.integer("projection_dim", 1024, 1, 1 << 20),
                 .positions = v.integer("max_position_embeddings", 50, 1, 1 << 16),
                 .times = v.integer("max_temporal_embeddings", 100, 1, 1 << 16)};
  if (f.projector.out != f.language.hidden)
    v.fail("projection_dim", "must be the language model's width, " + std::to_string(f.language.hidden));
  const std::int64_t side = davit_side(f.vision, f.vision.image_size);
  if (side < 1 || side > f.projector.positions)
    v.fail("max_position_embeddings", "the tower makes " + std::to_string(side) + " places a side of a picture of " +
                                          std::to_string(f.vision.image_size) + " pixels");
  Vlm m{.type = "florence2"};
  m.image_processor = image_processor::Florence2{.image_size = f.vision.image_size, .map = {side, side}};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::Florence2&) {}
/// CLIPImageProcessor with squares of 768 pixels; image_seq_length is what the processor writes.
inline void read_image_keys(ProcessorKeys& k, image_processor::Florence2& rule) {
  read_square_keys(k, rule.image_size);
  k.same("image_seq_length", rule.map.count() + 1, "vision_config");
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Florence2&) {
  k.ignore({"num_additional_image_tokens", "post_processor_config"});
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Florence2 {
  static constexpr std::string_view folder = "florence2";
  static constexpr std::array types{json::ModelType{.type = "florence2",
                                                    .read = json::hf::read_florence2,
                                                    .recorder = json::RecorderInputs{"square.florence2", 768}}};
  using Rules = json::Rules<image_processor::Florence2>;
};

}  // namespace vlmest::family
