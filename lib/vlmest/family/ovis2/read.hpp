// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/ovis2/family.hpp>
#include <vlmest/family/ovis2/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/tiles.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// models/ovis2/configuration_ovis2.py, Ovis2VisionConfig.
inline Ovis2Vision read_ovis2_vision(const Reader& r) {
  Ovis2Vision d;
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.image_size = r.side("image_size", d.image_size);
  d.patch_size = r.side("patch_size", d.patch_size);
  d.channels = r.integer("num_channels", d.channels, 1, 1 << 10);
  d.qkv_bias = r.boolean("qkv_bias", d.qkv_bias);
  d.mlp_bias = r.boolean("mlp_bias", d.mlp_bias);
  d.activation = parse_activation(r.string("hidden_act", "silu"));
  d.words = r.integer("vocab_size", d.words, 2, 1 << 24);
  d.indicators = r.integer("num_visual_indicator_tokens", d.indicators, 1, d.words - 1);
  d.stride = r.integer("hidden_stride", d.stride, 1, 1 << 8);
  divides(r, "num_attention_heads", d.hidden, d.heads);
  if (read_dropout(r, "attention_dropout", 0.0))
    r.fail("attention_dropout", "dropout in this tower is not modelled", "leave it at 0");
  if (d.side() < 1) r.fail("patch_size", "larger than image_size");
  if (d.side() % d.stride != 0)
    r.fail("hidden_stride",
           "does not divide the " + std::to_string(d.side()) + " patches of a side, on which transformers' code fails");
  if (const std::string how = r.string("tokenize_function", "softmax"); how != "softmax")
    r.fail("tokenize_function", "'" + how.substr(0, 64) + "' is not modelled",
           "softmax, as the released checkpoints have it");
  return d;
}

/// model_type "ovis2": transformers 5.17, models/ovis2/configuration_ovis2.py. Width and vocabulary stand in it twice.
inline Vlm read_ovis2(const Reader& r) {
  const Reader t = r.object("text_config");
  Ovis2Family f;
  f.vision = read_ovis2_vision(r.object("vision_config"));
  f.language = read_decoder(t, t.string("model_type", "qwen2"));
  f.tied = r.boolean("tie_word_embeddings", true);
  t.without_effect({"tie_word_embeddings"});
  if (f.vision.indicators != 5)
    r.object("vision_config").fail("num_visual_indicator_tokens", "the processor writes five kinds of them");
  if (r.integer("hidden_size", 1536) != width(f.language))
    r.fail("hidden_size", "must be the language model's width, " + std::to_string(width(f.language)));
  if (r.integer("vocab_size", 151643) != vocabulary(f.language))
    r.fail("vocab_size", "must be the language model's, " + std::to_string(vocabulary(f.language)));
  Vlm m{.type = "ovis2"};
  m.image_processor = image_processor::Ovis2{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .merge = f.vision.stride};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Ovis2& rule) { read_tiles(image, rule); }
/// Ovis2ImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::Ovis2& rule) {
  using image_processor::max_tile_count;
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  rule.min_tiles = k.integer("min_patches", 1, 1, max_tile_count);
  rule.max_tiles = k.integer("max_patches", 12, rule.min_tiles, max_tile_count);
  rule.covering = k.boolean("use_covering_area_grid", true);
  rule.tiling =
      k.boolean("crop_to_patches", false) ? image_processor::Tiling::automatic : image_processor::Tiling::never;
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Ovis2& rule) {
  k.same("image_seq_length",
         image_processor::merged(image_processor::square_patches(rule.image_size, rule.patch_size), rule.merge).count(),
         "vision_config");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Ovis2 {
  static constexpr std::string_view folder = "ovis2";
  static constexpr std::array types{json::ModelType{.type = "ovis2",
                                                    .read = json::hf::read_ovis2,
                                                    .recorder = json::RecorderInputs{"tiles.ovis2"},
                                                    .own_code = "ovis"}};
  using Rules = json::Rules<image_processor::Ovis2>;
};

}  // namespace vlmest::family
