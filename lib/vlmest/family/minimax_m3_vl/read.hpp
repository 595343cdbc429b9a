// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>

#include <vlmest/family/minimax_m3_vl/family.hpp>
#include <vlmest/family/minimax_m3_vl/read_text.hpp>
#include <vlmest/family/minimax_m3_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/minimax_m3_vl/configuration_minimax_m3_vl.py. The released config.json is written for the
/// checkpoint's own code: keys that the classes do not have change nothing here.
namespace vlmest::json::hf {

/// MiniMaxM3VLVisionConfig.
inline MiniMaxM3Vision read_minimax_vision(const Reader& v) {
  MiniMaxM3Vision g;
  g.hidden = v.integer("hidden_size", g.hidden, 1, 1 << 20);
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.layers = v.layers("num_hidden_layers", g.layers);
  g.heads = v.integer("num_attention_heads", g.heads, 1, 1 << 16);
  g.channels = v.integer("num_channels", g.channels, 1, 1 << 10);
  g.patch_size = v.side("patch_size", g.patch_size);
  g.frames = v.integer("temporal_patch_size", g.frames, 1, 64);
  g.merge = v.integer("spatial_merge_size", g.merge, 1, 64);
  g.activation = parse_activation(v.string("hidden_act", "gelu"));
  g.attention_dropout = read_dropout(v, "attention_dropout", 0.0);
  divides(v, "num_attention_heads", g.hidden, g.heads);
  if (g.hidden / g.heads % 4 > 1)
    v.fail("num_attention_heads", "rotation over two axes needs a head size that is a multiple of 4, or one more");
  const Reader rope = rope_parameters(v);
  if (const std::string type = rope.string("rope_type", rope.string("type", "axial"));
      type != "axial" && type != "default")
    rope.fail("rope_type", "'" + type.substr(0, 64) + "', which the tower refuses", "known: axial");
  v.without_effect({"image_size", "projection_dim", "position_embedding_type", "rope_mode", "vision_segment_max_frames",
                    "img_token_compression_config"});
  return g;
}

/// model_type "minimax_m3_vl".
inline Vlm read_minimax_m3_vl(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  MiniMaxM3VlFamily f{.vision = read_minimax_vision(v), .language = read_minimax_text(t)};
  refuse_null(r, {"projector_hidden_size"});
  f.projector = {.in = f.vision.hidden,
                 .hidden = r.integer("projector_hidden_size", f.projector.hidden, 1, 1 << 24),
                 .out = f.language.hidden,
                 .merged = checked_mul(f.vision.merge, f.vision.merge)};
  // The class reckons it, but takes what a file says.
  const std::int64_t merged = checked_mul(f.projector.out, f.projector.merged);
  if (r.integer("merged_hidden_size", merged, 1, INT64_MAX) != merged)
    r.fail("merged_hidden_size",
           "the merger takes squares of features, which have " + std::to_string(merged) + " channels", "leave it out");
  const bool text_tied = t.boolean("tie_word_embeddings", false);
  f.tied = r.boolean("tie_word_embeddings", false) || text_tied;
  r.without_effect({"process_image_mode", "projector_hidden_act", "vision_feature_layer",
                    "vision_feature_select_strategy", "multimodal_projector_bias", "image_grid_pinpoints",
                    "img_token_compression_config"});
  Vlm m{.type = "minimax_m3_vl"};
  m.image_processor = image_processor::MiniMaxM3Vl{
      .patch_size = f.vision.patch_size, .merge = f.vision.merge, .temporal_patch_size = f.vision.frames};
  m.native = {672, 672};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::MiniMaxM3Vl& rule) { image.budget(rule.budget); }
/// MiniMaxM3VLImageProcessor; the size in the released file, [672, 672], stands for the class's own.
inline void read_image_keys(ProcessorKeys& k, image_processor::MiniMaxM3Vl& rule) {
  read_patch_keys(k, rule, rule.temporal_patch_size, "vision_config.temporal_patch_size");
  const image_processor::PixelBudget of_class = image_processor::MiniMaxM3Vl{}.budget;
  if (k.given("size") && k.value("size") == nlohmann::json::array({672, 672})) {
    constexpr std::int64_t most = image_processor::max_side * image_processor::max_side;
    rule.budget.min_pixels = k.integer("min_pixels", of_class.min_pixels, 1, most);
    rule.budget.max_pixels = k.integer("max_pixels", of_class.max_pixels, rule.budget.min_pixels, most);
  } else {
    read_budget(k, rule.budget, of_class, true);
  }
}
inline void read_outer_keys(ProcessorKeys&, image_processor::MiniMaxM3Vl&) {}
/// MiniMaxM3VLVideoProcessor: frames keep their size whatever the file says (MiniMaxM3VLProcessorKwargs).
inline void read_video_keys(ProcessorKeys& k, image_processor::MiniMaxM3Vl& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.spatial_merge_size");
  k.same("temporal_patch_size", rule.temporal_patch_size, "vision_config.temporal_patch_size");
  rule.fps = *read_rate(k, 1.0);
  refuse_num_frames(k);
  k.ignore({"do_resize", "size", "min_pixels", "max_pixels", "total_pixels", "min_frames", "max_frames"});
}

}  // namespace vlmest::json

namespace vlmest::family {

struct MiniMaxM3Vl {
  static constexpr std::string_view folder = "minimax_m3_vl";
  static constexpr std::array types{json::ModelType{.type = "minimax_m3_vl",
                                                    .read = json::hf::read_minimax_m3_vl,
                                                    .recorder = json::RecorderInputs{"native.minimax_m3_vl", 672}}};
  using Rules = json::Rules<image_processor::MiniMaxM3Vl>;
};

}  // namespace vlmest::family
