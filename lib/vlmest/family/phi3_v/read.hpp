// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/family/phi3_v/family.hpp>
#include <vlmest/family/phi3_v/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// Phi-3-vision by the files that its checkpoints bring: configuration_phi3_v.py and modeling_phi3_v.py of
/// microsoft/Phi-3.5-vision-instruct as sdpython/experimental-experiment took them over (experimental_experiment/
/// torch_models/fromhub, commits da2d0f7 and ee6eceec), image_processing_phi3_v.py and processing_phi3_v.py of
/// microsoft/Phi-3-vision-128k-instruct as Aritra02091998/Phi-3-vision-128k-instruct-Improvised-for-QLORA-Training has
/// them (commit 31ce181).
namespace vlmest::json::hf {

/// img_processor: the class builds one tower, of whatever size the file would call it.
inline Phi3VVision read_phi3v_vision(const Reader& r) {
  const Reader p = r.object("img_processor");
  Phi3VVision v;
  const auto must = [&](const char* key, std::string_view known) {
    if (!p.given(key)) p.fail(key, "missing", "known: " + std::string(known));
    if (p.string(key, known) != known) p.fail(key, "the class builds no other tower", "known: " + std::string(known));
  };
  must("name", "clip_vision_model");
  must("model_name", "openai/clip-vit-large-patch14-336");
  if (!p.given("num_img_tokens")) p.fail("num_img_tokens", "missing: the class asks for it", "give 144, as released");
  p.integer("num_img_tokens", 144);  // of a path that asserts it is not taken
  if (p.integer("image_dim_out", 0) != v.tower.hidden)
    p.fail("image_dim_out", "not the tower's width", "give " + std::to_string(v.tower.hidden));
  if (p.string("type_feature", "patch") != "patch")
    p.fail("type_feature", "the class takes no other features", "known: patch");
  v.feature_layer = p.integer("layer_idx", v.feature_layer, -(v.tower.layers + 1), v.tower.layers);
  return v;
}

/// embd_layer: what the forward runs without an error.
inline void check_phi3v_embedding(const Reader& r) {
  if (!r.given("embd_layer") || !r.value()["embd_layer"].is_object())
    r.fail("embd_layer", "no object: a model without a tower, which is not modelled", "give that of a released file");
  const Reader e = r.object("embd_layer");
  if (!e.given("embedding_cls")) e.fail("embedding_cls", "missing: the class asks for it", "give \"image\"");
  e.string("embedding_cls", "image");  // whatever it says
  for (const char* key : {"use_hd_transform", "with_learnable_separator"})
    if (!e.boolean(key, false)) e.fail(key, "false: its forward refuses pictures", "give true, as released");
  const auto must = [&](const char* key, std::string_view absent, std::string_view known) {
    if (e.string(key, absent) != known)
      e.fail(key, "its forward refuses pictures with another", "give \"" + std::string(known) + "\", as released");
  };
  must("hd_transform_order", "glb_sub", "sub_glb");
  must("projection_cls", "linear", "mlp");
}

/// rope_scaling: its class takes two types, with a factor for each pair of channels.
inline Phi3VText::Rope read_phi3v_rope(const Reader& r, std::int64_t head_dim) {
  if (head_dim % 2 != 0) r.fail("num_attention_heads", "heads of an odd number of channels cannot turn");
  r.without_effect({"max_position_embeddings"});
  if (!r.given("rope_scaling")) return Phi3VText::Rope::plain;
  const Reader rope = r.object("rope_scaling");
  const std::string type = rope.string("type", "");
  if (type != "su" && type != "yarn")
    rope.fail("type", "'" + type.substr(0, 64) + "' is none that the class knows", "known: su, yarn");
  for (const char* key : {"short_factor", "long_factor"}) {
    const auto n = rope.given(key) && rope.value()[key].is_array() ? static_cast<std::int64_t>(rope.value()[key].size())
                                                                   : std::int64_t{-1};
    if (n != head_dim / 2)
      rope.fail(key,
                "expected a list of " + std::to_string(head_dim / 2) + " numbers, a factor for each pair of channels");
  }
  return type == "su" ? Phi3VText::Rope::su : Phi3VText::Rope::yarn;
}

/// Phi3VConfig.
inline Phi3VText read_phi3v_text(const Reader& r) {
  Phi3VText d = text_model(r, Phi3VText{}, std::nullopt, std::nullopt);
  if (d.head_dim * d.heads != d.hidden)
    r.fail("hidden_size", "is not num_attention_heads times a whole number", "the class refuses it");
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attention_dropout"})
    if (read_dropout(r, key, 0.0)) r.fail(key, "dropout of Phi-3-vision is not modelled", "give 0.0, as released");
  d.rope = read_phi3v_rope(r, d.head_dim);
  d.window = r.optional_integer("sliding_window");
  return d;
}

/// model_type "phi3_v".
inline Vlm read_phi3v(const Reader& r) {
  r.without_effect({"_attn_implementation"});  // from_pretrained's own argument says over it
  Phi3VFamily f;
  f.language = read_phi3v_text(r);
  check_phi3v_embedding(r);
  f.vision = read_phi3v_vision(r);
  if (r.given("n_embd") && r.integer("n_embd", f.language.hidden) != f.language.hidden)
    r.fail("n_embd", "features would be of another width than embeddings", "leave it out");
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "phi3_v"};
  m.image_processor = image_processor::Phi3V{};
  m.native = {image_processor::phi3v_side, image_processor::phi3v_side};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Phi3V& rule) { image.max_tiles(rule.max_tiles); }

/// Phi3VImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::Phi3V& rule) {
  rule.max_tiles = k.integer("num_crops", 1, 1, image_processor::max_tile_count);
  k.ignore({"num_img_tokens"});
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Phi3V&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct Phi3V {
  static constexpr std::string_view folder = "phi3_v";
  static constexpr std::array types{json::ModelType{
      .type = "phi3_v", .read = json::hf::read_phi3v, .recorder = json::not_recorded, .remote_code = true}};
  using Rules = json::Rules<image_processor::Phi3V>;
};

}  // namespace vlmest::family
