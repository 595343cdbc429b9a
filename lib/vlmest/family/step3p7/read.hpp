// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include <vlmest/family/step3p7/family.hpp>
#include <vlmest/family/step3p7/read_text.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// Step-3.7 out of a Hugging Face config: transformers 5.17, models/step3p7/configuration_step3p7.py.
namespace vlmest::json::hf {

/// Step3p7VisionConfig: names that the released file has come before those of transformers; the width of the MLP is
/// that of the layers times mlp_ratio whatever intermediate_size says. What the file says of norms, class tokens and
/// positions the class does not ask.
inline Step3p7Vision read_step_vision(const Reader& v) {
  Step3p7Vision g;
  v.without_effect({"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "ls_init_value",
                    "use_cls_token", "ues_cls_token", "use_ln_pre", "use_ln_post", "use_abs_posemb", "use_rope2d"});
  const auto named = [&](const char* file, const char* own) { return v.has(file) ? file : own; };
  const char *width = named("width", "hidden_size"), *layers = named("layers", "num_hidden_layers"),
             *heads = named("heads", "num_attention_heads");
  refuse_null(v, {width, layers, heads, "image_size", "patch_size", "num_channels", "mlp_ratio"});
  g.hidden = v.integer(width, g.hidden, 1, 1 << 20);
  g.layers = v.layers(layers, g.layers);
  g.heads = v.integer(heads, g.heads, 1, 1 << 16);
  g.image_size = v.integer("image_size", g.image_size, 1, 1 << 16);
  g.patch_size = v.integer("patch_size", g.patch_size, 1, 1 << 16);
  g.channels = v.integer("num_channels", g.channels, 1, 1 << 10);
  g.activation = parse_activation(v.string("hidden_act", "quick_gelu"));
  g.attention_dropout = read_dropout(v, "attention_dropout", 0.0);
  const double ratio = v.number("mlp_ratio", 8960.0 / 1536.0);
  if (!(ratio > 0.0 && ratio <= 1024.0)) v.fail("mlp_ratio", "must lie between 0 and 1024");
  g.intermediate = static_cast<std::int64_t>(static_cast<double>(g.hidden) * ratio);
  if (g.intermediate < 1) v.fail("mlp_ratio", "leaves an MLP without channels");
  divides(v, heads, g.hidden, g.heads);
  if (g.head_dim() % 4 != 0) v.fail(heads, "rotation over two axes needs a head size that is a multiple of 4");
  if (v.integer("head_dim", g.head_dim(), 1, 1 << 16) != g.head_dim())
    v.fail("head_dim", "the attention's heads have hidden_size / num_attention_heads channels", "leave it out");
  if (g.patch_size > g.image_size) v.fail("patch_size", "larger than the image");
  const Reader rope = rope_parameters(v);
  if (const std::string type = rope.string("rope_type", rope.string("type", "axial"));
      type != "axial" && type != "default")
    rope.fail("rope_type", "'" + type.substr(0, 64) + "', but the tower turns by rows and columns", "known: axial");
  return g;
}

/// model_type "step3p7". A part that is missing is its class's default; what a part says of its own model_type and of
/// tied weights has no effect.
inline Vlm read_step3p7(const Reader& r) {
  Step3p7Family f{.vision = read_step_vision(r.object("vision_config")),
                  .language = read_step_text(r.object("text_config"))};
  r.without_effect({"understand_projector_stride"});
  f.projector_bias = r.boolean("projector_bias", false);
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "step3p7"};
  const image_processor::Step3p7 rule{.patch_size = f.vision.patch_size};
  m.image_processor = rule;
  m.native = {rule.size, rule.size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Step3p7& rule) {
  image.longest_edge(rule.longest_edge);
}
/// Step3p7ImageProcessor, which asks size for its height alone; its patch_size is the side of a tile.
inline void read_image_keys(ProcessorKeys& k, image_processor::Step3p7& rule) {
  k.must_be("do_resize", true);
  if (const ProcessorSize size = k.size("size"); size.given()) {
    if (!size.height) k.fail("size", "has no height, which the class asks it for", "give equal height and width");
    rule.size = *size.height;
  }
  rule.tile = k.integer("patch_size", rule.tile, 1, image_processor::max_side);
  rule.longest_edge = k.integer("max_image_size", rule.longest_edge, 1, image_processor::max_side);
  k.same("vision_patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("downsampler_stride", 4, "the two convolutions");
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Step3p7&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct Step3p7 {
  static constexpr std::string_view folder = "step3p7";
  static constexpr std::array types{json::ModelType{.type = "step3p7",
                                                    .read = json::hf::read_step3p7,
                                                    .recorder = json::RecorderInputs{"tiles.step3p7", 728},
                                                    .text_part = "step3p5"}};
  using Rules = json::Rules<image_processor::Step3p7>;
};

}  // namespace vlmest::family
