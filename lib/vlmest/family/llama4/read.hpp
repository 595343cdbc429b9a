// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include <vlmest/family/llama4/family.hpp>
#include <vlmest/family/llama4/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/llama4.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// Llama 4: transformers 5.17, models/llama4/configuration_llama4.py.
namespace vlmest::json::hf {

/// Llama4VisionConfig.
inline Llama4Vision read_llama4_vision(const Reader& r) {
  for (const char* key : {"image_size", "patch_size"})
    if (r.given(key) && r.value()[key].is_array())
      r.fail(key, "a list, by which the class cannot divide", "give one number");
  Llama4Vision d = vit(r, Llama4Vision{}, "gelu");
  r.without_effect({"multi_modal_projector_bias", "vision_feature_layer"});  // the class has one projector
  d.output = r.integer("vision_output_dim", d.output, 1, 1 << 24);
  d.merge = read_merge(r, "pixel_shuffle_ratio", 0.5);
  d.adapter_in = r.integer("projector_input_dim", d.adapter_in, 1, 1 << 24);
  d.adapter_out = r.integer("projector_output_dim", d.adapter_out, 1, 1 << 24);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.adapter_dropout = read_dropout(r, "projector_dropout", 0.0);
  if (d.side() % d.merge != 0)
    r.fail("pixel_shuffle_ratio",
           std::to_string(d.side()) + " patches a side cannot be folded by " + std::to_string(d.merge),
           "choose image_size / patch_size as a multiple of 1 / pixel_shuffle_ratio");
  return d;
}

/// model_type "llama4". The output head is tied by the language model's own key.
inline Vlm read_llama4(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  Llama4Family f{.vision = read_llama4_vision(v), .language = llama4_text(t)};
  f.tied = t.boolean("tie_word_embeddings", false);
  Vlm m{.type = "llama4"};
  m.image_processor = image_processor::Llama4{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Llama4& rule) {
  image.max_tiles(rule.max_tiles);
  image.flag("resize_to_max_canvas", rule.enlarge);
}
/// Llama4ImageProcessor, whose tiles are of 336 pixels where the file leaves their size out.
inline void read_image_keys(ProcessorKeys& k, image_processor::Llama4& rule) {
  k.must_be("do_resize", true);
  ProcessorSize size = k.size("size");
  if (!size.given()) size.height = size.width = 336;
  k.square("size", size, rule.image_size);
  rule.max_tiles = k.integer("max_patches", 16, 1, image_processor::max_tile_count);
  rule.enlarge = k.boolean("resize_to_max_canvas", false);
}
/// A tile's placeholders are (size // patch_size)^2 // round(1 / pixel_shuffle_ratio^2) (Llama4Processor).
inline void read_outer_keys(ProcessorKeys& k, image_processor::Llama4& rule) {
  const std::int64_t patch = k.integer("patch_size", 14, 1, image_processor::max_side);
  const double ratio = k.number("pixel_shuffle_ratio", 0.5);
  if (!(ratio >= 1e-3 && ratio <= 1.0)) k.fail("pixel_shuffle_ratio", "must lie between 0.001 and 1");
  const std::int64_t side = rule.image_size / patch, tokens = side * side / std::llround(1.0 / (ratio * ratio));
  const std::int64_t own =
      image_processor::merged(image_processor::square_patches(rule.image_size, rule.patch_size), rule.merge).count();
  if (tokens != own)
    k.differs("patch_size", std::to_string(tokens) + " tokens of a tile",
              "config.json makes them " + std::to_string(own));
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Llama4 {
  static constexpr std::string_view folder = "llama4";
  static constexpr std::array types{json::ModelType{
      .type = "llama4", .read = json::hf::read_llama4, .recorder = json::RecorderInputs{"tiles.llama4"}}};
  using Rules = json::Rules<image_processor::Llama4>;
};

}  // namespace vlmest::family
