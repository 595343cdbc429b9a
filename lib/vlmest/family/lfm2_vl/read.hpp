// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/lfm2_vl/family.hpp>
#include <vlmest/family/lfm2_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// models/siglip2/configuration_siglip2.py, Siglip2VisionConfig. A file may say vision_use_head, which the class does
/// not name; the table of positions must be a square.
inline Siglip2Vision read_siglip2(const Reader& r) {
  Siglip2Vision d;
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.patch_size = r.side("patch_size", d.patch_size);
  d.channels = r.integer("num_channels", d.channels, 1, 1 << 10);
  d.positions = r.integer("num_patches", d.positions, 1, 1 << 24);
  d.activation = parse_activation(r.string("hidden_act", "gelu_pytorch_tanh"));
  d.head = !r.is_null("vision_use_head") && r.boolean("vision_use_head", true);
  divides(r, "num_attention_heads", d.hidden, d.heads);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(d.positions)));
  if (side * side != d.positions) r.fail("num_patches", "the table of positions is no square", "256, say");
  return d;
}

/// model_type "lfm2_vl": transformers 5.17, models/lfm2_vl/configuration_lfm2_vl.py. The native size is that of a
/// picture with as many tokens as one may have.
inline Vlm read_lfm2_vl(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  if (const std::string tower = v.string("model_type", "siglip2_vision_model"); tower != "siglip2_vision_model")
    v.fail("model_type", "unknown vision tower '" + tower.substr(0, 64) + "'", "known: siglip2_vision_model");
  Lfm2VlFamily f;
  f.vision = read_siglip2(v);
  f.language = read_decoder(t, t.string("model_type", "lfm2"));
  t.without_effect({"tie_embedding", "tie_word_embeddings"});
  f.tied = r.boolean("tie_embedding", r.boolean("tie_word_embeddings", true));
  f.projector = {.in = f.vision.hidden,
                 .inner = r.integer("projector_hidden_size", 2560, 1, 1 << 24),
                 .out = width(f.language),
                 .scale = r.integer("downsample_factor", 2, 1, 1 << 8),
                 .activation = parse_activation(r.string("projector_hidden_act", "gelu")),
                 .bias = r.boolean("projector_bias", true),
                 .norm = r.boolean("projector_use_layernorm", true)};
  const image_processor::Lfm2Vl rule{.patch_size = f.vision.patch_size, .merge = f.projector.scale};
  Vlm m{.type = "lfm2_vl"};
  m.native = image_processor::resized_whole(rule, {rule.tile_size, rule.tile_size});
  m.image_processor = rule;
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Lfm2Vl& rule) {
  image.number("min_tokens", rule.min_tokens, 1, image_processor::max_side);
  image.number("max_tokens", rule.max_tokens, 1, image_processor::max_side);
  image.min_tiles(rule.min_tiles);
  image.max_tiles(rule.max_tiles);
  image.flag("thumbnail", rule.thumbnail);
  image.tiling(rule.tiling);
}
/// Lfm2VlImageProcessor. It resizes whatever do_resize says, and `size` is not read.
inline void read_image_keys(ProcessorKeys& k, image_processor::Lfm2Vl& rule) {
  using image_processor::max_side, image_processor::max_tile_count;
  const image_processor::Lfm2Vl own;
  k.ignore({"do_resize", "size", "crop_size", "do_center_crop", "max_num_patches"});
  k.same("encoder_patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("downsample_factor", rule.merge, "downsample_factor");
  rule.min_tokens = k.integer("min_image_tokens", own.min_tokens, 1, max_side);
  rule.max_tokens = k.integer("max_image_tokens", own.max_tokens, rule.min_tokens, max_side);
  rule.tile_size = k.integer("tile_size", own.tile_size, rule.patch_size, max_side);
  rule.min_tiles = k.integer("min_tiles", own.min_tiles, 1, max_tile_count);
  rule.max_tiles = k.integer("max_tiles", own.max_tiles, rule.min_tiles, max_tile_count);
  rule.thumbnail = k.boolean("use_thumbnail", own.thumbnail);
  rule.tolerance = k.number("max_pixels_tolerance", own.tolerance);
  rule.tiling =
      k.boolean("do_image_splitting", true) ? image_processor::Tiling::automatic : image_processor::Tiling::never;
  k.must_be("do_pad", true);
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Lfm2Vl& rule) {
  rule.markers = k.boolean("use_image_special_tokens", true);
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Lfm2Vl {
  static constexpr std::string_view folder = "lfm2_vl";
  static constexpr std::array types{json::ModelType{
      .type = "lfm2_vl", .read = json::hf::read_lfm2_vl, .recorder = json::RecorderInputs{"native.lfm2_vl", 512}}};
  using Rules = json::Rules<image_processor::Lfm2Vl>;
};

}  // namespace vlmest::family
