// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <utility>

#include <vlmest/family/hunyuan_vl/family.hpp>
#include <vlmest/family/hunyuan_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/pixel_budget.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/hunyuan_vl/configuration_hunyuan_vl.py.
namespace vlmest::json::hf {

/// mrope_section of the rope parameters, or xdrope_section as older files call it: a count for each axis, three or
/// more, that add up to half a head's channels.
inline std::vector<std::int64_t> read_hunyuan_sections(const Reader& t, std::int64_t head_dim) {
  const Reader rope = rope_parameters(t);
  const char* key = rope.given("mrope_section") ? "mrope_section" : "xdrope_section";
  if (!rope.given(key)) rope.fail("mrope_section", "missing", "transformers' class counts its axes by it");
  const nlohmann::json& list = rope.value()[key];
  if (!list.is_array()) rope.fail(key, "expected a list of counts");
  std::vector<std::int64_t> s;
  std::int64_t sum = 0;
  for (const auto& n : list) {  // checkpoints write whole numbers as 16.0
    const double count = n.is_number() ? n.get<double>() : 0.0;
    if (!(count >= 1.0 && count <= 1 << 15) || count != std::floor(count))
      rope.fail(key, "every entry must be a whole number between 1 and 32768");
    s.push_back(static_cast<std::int64_t>(count));
    sum += s.back();
    if (s.size() > 16) break;
  }
  if (s.size() < 3 || s.size() > 16 || sum != head_dim / 2)
    rope.fail(key, "expected at least three counts that add up to half a head's channels");
  return s;
}

/// HunYuanVLTextConfig, whose attribute_map has attention_head_dim and org_vocab_size write over head_dim and
/// vocab_size.
inline HunYuanTextConfig read_hunyuan_text(const Reader& given) {
  nlohmann::json renamed = given.value();
  for (const auto& [alias, name] : {std::pair{"attention_head_dim", "head_dim"}, {"org_vocab_size", "vocab_size"}})
    if (given.has(alias)) renamed[name] = given.value()[alias];
  const Reader t(renamed, given);
  HunYuanTextConfig d;
  LlamaConfig& g = d.layers;
  if (!t.given("head_dim"))
    t.fail("head_dim", "missing: transformers' class takes it as it stands", "give head_dim or attention_head_dim");
  g = text_model(t, g, std::nullopt, std::nullopt);
  g.qkv_bias = g.o_bias = t.boolean("attention_bias", false);
  g.attention_dropout = read_dropout(t, "attention_dropout", 0.0);
  d.sections = read_hunyuan_sections(t, g.head_dim);
  const Reader rope = rope_parameters(t);
  const std::string type = rope.string("rope_type", rope.string("type", "default"));
  if (type == "dynamic" || type == "xdrope")  // an older name of it
    d.dynamic = t.integer("max_position_embeddings", 2048, 1, 1 << 30);
  else if (type != "default" && type != "linear" && type != "yarn" && type != "llama3")
    rope.fail("rope_type", "'" + type + "' is not modelled here",
              "known: default, dynamic, linear, llama3, xdrope, yarn");
  return d;
}

/// HunYuanVLVisionConfig. Heads of keys and values are as many as those of queries, whatever it says.
inline HunYuanVision read_hunyuan_tower(const Reader& v) {
  HunYuanVision g;
  v.without_effect({"num_key_value_heads", "out_hidden_size", "text_hidden_size"});  // the last two are the text's
  g.hidden = v.integer("hidden_size", g.hidden, 1, 1 << 20);
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.layers = v.layers("num_hidden_layers", g.layers);
  g.heads = v.integer("num_attention_heads", g.heads, 1, 1 << 16);
  g.channels = v.integer("num_channels", g.channels, 1, 1 << 10);
  g.patch_size = v.side("patch_size", g.patch_size);
  g.merge = v.integer("spatial_merge_size", g.merge, 1, 64);
  g.image_size = v.side("max_image_size", g.image_size);
  g.activation = parse_activation(v.string("hidden_act", "gelu"));
  divides(v, "num_attention_heads", g.hidden, g.heads);
  const std::string mode = v.string("interpolate_mode", "bilinear");
  if (mode != "bilinear" && mode != "bicubic")
    v.fail("interpolate_mode", "unknown '" + mode + "'", "known: bilinear, bicubic");
  g.cubic = mode == "bicubic";
  return g;
}

/// model_type "hunyuan_vl". The text keys may stand beside vision_config. Whether the head is tied its text config
/// says, which the class puts over its own key (HunYuanVLConfig.__post_init__); it does not see that one where all keys
/// stand in one object.
inline Vlm read_hunyuan_vl(const Reader& r) {
  const Reader t = r.given("text_config") ? r.object("text_config") : r;
  HunYuanFamily f;
  f.language = read_hunyuan_text(t);
  f.vision = read_hunyuan_tower(r.object("vision_config"));
  f.vision.out = width(f.language);
  r.without_effect({"tie_word_embeddings"});
  f.tied = !r.given("text_config") || t.boolean("tie_word_embeddings", true);
  Vlm m{.type = "hunyuan_vl"};
  m.image_processor = image_processor::HunYuan{.patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {1024, 1024};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::HunYuan& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::HunYuan& rule) {
  read_single_frame_keys(k, rule);
  read_budget(k, rule.budget, {512 * 512, 2048 * 2048}, true);
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::HunYuan&) { k.must_be("cat_extra_token", true); }

}  // namespace vlmest::json

namespace vlmest::family {

struct HunYuanVl {
  static constexpr std::string_view folder = "hunyuan_vl";
  static constexpr std::array types{json::ModelType{.type = "hunyuan_vl",
                                                    .read = json::hf::read_hunyuan_vl,
                                                    .recorder = json::RecorderInputs{"native.hunyuan_vl", 1024},
                                                    .text_part = "hunyuan_vl_text"}};
  using Rules = json::Rules<image_processor::HunYuan>;
};

}  // namespace vlmest::family
