// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/muse_glimmer/family.hpp>
#include <vlmest/family/muse_glimmer/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/muse_glimmer/configuration_muse_glimmer.py.
namespace vlmest::json::hf {

/// MuseGlimmerVisionConfig: without layer_types every fourth layer and the last one see whole pictures.
inline MuseGlimmerVision read_muse_vision(const Reader& v) {
  MuseGlimmerVision g;
  g.hidden = v.integer("hidden_size", g.hidden, 1, 1 << 20);
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.layers = v.layers("num_hidden_layers", g.layers);
  g.heads = v.integer("num_attention_heads", g.heads, 1, 1 << 16);
  g.patch_size = v.side("patch_size", g.patch_size);
  g.frames = v.integer("patch_temporal", g.frames, 1, 64);
  g.table_rows = v.integer("pos_emb_height", g.table_rows, 1, 1 << 14);
  g.table_cols = v.integer("pos_emb_width", g.table_cols, 1, 1 << 14);
  g.merge = v.integer("merge_size", g.merge, 1, 64);
  g.activation = parse_activation(v.string("hidden_act", "gelu"));
  divides(v, "num_attention_heads", g.hidden, g.heads);
  if (g.hidden / g.heads % 4 != 0)
    v.fail("num_attention_heads", "rotation over two axes needs a head size that is a multiple of 4");
  if (v.integer("head_dim", g.hidden / g.heads, 1, 1 << 16) != g.hidden / g.heads)
    v.fail("head_dim", "the attention's heads have hidden_size / num_attention_heads channels", "leave it out");
  if (g.table_cols < g.table_rows)
    v.fail("pos_emb_width", "the table is read as a square of pos_emb_height rows", "give at least that many columns");
  const Reader rope = rope_parameters(v);
  if (const std::string type = rope.string("rope_type", rope.string("type", "axial"));
      type != "axial" && type != "default")
    rope.fail("rope_type", "'" + type.substr(0, 64) + "', but the tower turns by rows and columns", "known: axial");
  if (v.given("layer_types")) {
    g.windows = marked_layers(v, "layer_types", g.layers, "full_attention", "window_attention");
  } else {
    for (std::int64_t i = 0; i < g.layers; ++i) g.windows.push_back((i + 1) % 4 != 0 && i + 1 < g.layers);
  }
  return g;
}

/// Which layers' queries and keys turn: those with a base in layer_rope_theta that is not 0; without the list all but
/// every fourth, counted from the last one backwards.
inline std::vector<bool> read_turning_layers(const Reader& t, std::int64_t layers) {
  std::vector<bool> turns;
  if (!t.given("layer_rope_theta")) {
    for (std::int64_t i = 0; i < layers; ++i) turns.push_back((layers - 1 - i) % 4 != 0);
    return turns;
  }
  const auto& list = t.value()["layer_rope_theta"];
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) < layers)
    t.fail("layer_rope_theta", "expected a number for each of the " + std::to_string(layers) + " layers");
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto& base = list[static_cast<std::size_t>(i)];
    if (!base.is_number()) t.fail("layer_rope_theta", "expected numbers", "0 is a layer without positions");
    turns.push_back(base.get<double>() != 0.0);
  }
  return turns;
}

/// MuseGlimmerTextConfig.
inline MuseGlimmerText read_muse_text(const Reader& t) {
  MuseGlimmerText d = text_model(t, MuseGlimmerText{}, 2, 128, "hidden_activation");
  divides(t, "num_attention_heads", d.hidden, d.heads);  // validate_architecture, whatever head_dim is
  d.attention_bias = t.boolean("attention_bias", false);
  for (const char* key : {"final_logit_softcapping", "output_multiplier"}) {
    if (t.is_null(key)) t.fail(key, "null, by which the class cannot multiply", "give a number");
    t.number(key, 1.0);
  }
  d.attention_dropout = read_dropout(t, "attention_dropout", 0.0);
  if (t.is_null("sliding_window"))
    t.fail("sliding_window", "null, but the model makes a sliding mask whatever its layers are", "give a window");
  // Of a window of one token the cache would keep everything (DynamicSlidingWindowLayer).
  d.window = t.integer("sliding_window", d.window, 2);
  check_layer_types(t);
  d.sliding = sliding_layers(t, d.layers, [&](std::int64_t i) { return (d.layers - 1 - i) % 4 != 0; });
  d.turns = read_turning_layers(t, d.layers);
  check_static_rope(t);
  const Reader rope = rope_parameters(t);
  for (const char* type : {"full_attention", "sliding_attention"})
    if (rope.has(type)) rope.fail(type, "the model has one set of rotary parameters for all layers", "give them once");
  return d;
}

/// model_type "muse_glimmer". What the text_config says of tied weights has no effect.
inline Vlm read_muse_glimmer(const Reader& r) {
  MuseGlimmerFamily f{.vision = read_muse_vision(r.object("vision_config")),
                      .language = read_muse_text(r.object("text_config"))};
  if (r.integer("out_hidden_size", 6144, 1, 1 << 26) != f.vision.folded())
    r.fail("out_hidden_size",
           "squares of merged patches have " + std::to_string(f.vision.folded()) +
               " channels, which the adapter must take",
           "give the vision_config's hidden_size * merge_size^2");
  f.adapter = r.integer("projector_hidden_size", f.adapter, 1, 1 << 24);
  f.adapter_activation = parse_activation(r.string("projector_hidden_act", "gelu"));
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "muse_glimmer"};
  m.image_processor = image_processor::MuseGlimmer{
      .patch_size = f.vision.patch_size, .merge = f.vision.merge, .temporal_patch_size = f.vision.frames};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::MuseGlimmer& rule) {
  image.number("max_image_tokens", rule.max_image_tokens);
}
/// MuseGlimmerImageProcessor, which has no use for `size`.
inline void read_image_keys(ProcessorKeys& k, image_processor::MuseGlimmer& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.merge_size");
  k.same("temporal_patch_size", rule.temporal_patch_size, "vision_config.patch_temporal");
  rule.max_image_tokens = k.integer("max_image_tokens", 4096, 1, std::int64_t{1} << 40);
  k.ignore({"size"});
}
inline void read_outer_keys(ProcessorKeys&, image_processor::MuseGlimmer&) {}
/// MuseGlimmerVideoProcessor.
inline void read_video_keys(ProcessorKeys& k, image_processor::MuseGlimmer& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.merge_size");
  k.same("temporal_patch_size", rule.temporal_patch_size, "vision_config.patch_temporal");
  rule.max_frame_tokens = k.integer("max_video_frame_tokens", 144, 1, std::int64_t{1} << 40);
  rule.num_frames = k.integer("num_frames", 96, 1, image_processor::max_frames);
  rule.fps = *read_rate(k, 2.0);
  k.ignore({"size"});
}

}  // namespace vlmest::json

namespace vlmest::family {

struct MuseGlimmer {
  static constexpr std::string_view folder = "muse_glimmer";
  static constexpr std::array types{json::ModelType{.type = "muse_glimmer",
                                                    .read = json::hf::read_muse_glimmer,
                                                    .recorder = json::RecorderInputs{"native.muse_glimmer", 448},
                                                    .text_part = "muse_glimmer_text"}};
  using Rules = json::Rules<image_processor::MuseGlimmer>;
};

}  // namespace vlmest::family
