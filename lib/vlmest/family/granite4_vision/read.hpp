// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <vlmest/family/granite4_vision/family.hpp>
#include <vlmest/family/granite4_vision/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/anyres.hpp>
#include <vlmest/json/hf/qformer.hpp>
#include <vlmest/json/processor/anyres.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/granite4_vision/configuration_granite4_vision.py.
namespace vlmest::json::hf {

/// "4/8" as both its numbers; (0, 0): it is none.
inline std::pair<std::int64_t, std::int64_t> rate_of(const std::string& s) {
  std::pair<std::int64_t, std::int64_t> r{};
  const char* const end = s.data() + s.size();
  const auto first = std::from_chars(s.data(), end, r.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '/') return {};
  const auto second = std::from_chars(first.ptr + 1, end, r.second);
  const auto fits = [](std::int64_t n) { return n >= 1 && n <= 1024; };
  return second.ec == std::errc{} && second.ptr == end && fits(r.first) && fits(r.second)
             ? r
             : std::pair<std::int64_t, std::int64_t>{};
}

/// The tower: CLIP's or SigLIP's.
inline VisionConfig read_granite4_tower(const Reader& r) {
  const Reader v = r.object("vision_config");
  const std::string type =
      v.string("model_type", r.given("vision_config") ? "clip_vision_model" : "siglip_vision_model");
  if (type != "clip_vision_model" && type != "siglip_vision_model")
    v.fail("model_type", "the vision tower '" + type.substr(0, 64) + "' of this type is not modelled",
           "known: clip_vision_model, siglip_vision_model");
  return read_tower(v, type);
}

/// The Q-Former's config, or without one what Granite4VisionConfig.__post_init__ makes of the tower's width.
inline QFormerConfig read_window_qformer(const Reader& r, std::int64_t width) {
  if (r.given("qformer_config")) {
    const Reader q = r.object("qformer_config");
    check_part(q, "blip_2_qformer");
    const QFormerConfig d = read_qformer(q, q.integer("encoder_hidden_size", 1408, 1, 1 << 20), false);
    if (d.hidden != width)
      q.fail("hidden_size", "queries are patches of the tower: " + std::to_string(width) + " wide");
    if (d.encoder_hidden != width)
      q.fail("encoder_hidden_size", "the tower's patches are " + std::to_string(width) + " wide");
    return d;
  }
  if (width < 64 || width % (width / 64) != 0)
    r.object("vision_config")
        .fail("hidden_size", "not divisible by its own number of heads of 64 channels", "give a qformer_config");
  return {.hidden = width,
          .intermediate = 3072,
          .layers = 1,
          .heads = width / 64,
          .cross_every = 1,
          .encoder_hidden = width};
}

/// Windows that fill a tile of `side` patches.
inline void read_windows(const Reader& r, std::int64_t side, WindowQFormerConfig& d) {
  const std::string rate = r.string("downsample_rate", "");
  std::tie(d.query, d.window) = rate_of(rate);
  if (d.window == 0)
    r.fail("downsample_rate", rate.empty() ? "missing" : "'" + rate.substr(0, 64) + "' is no rate",
           "queries and patches on a side of a window, as \"4/8\"");
  d.side = side;
  if (side % d.window != 0)
    r.fail("downsample_rate",
           std::to_string(side) + " patches on a side are no whole windows of " + std::to_string(d.window),
           "its denominator must divide image_size / patch_size");
}

/// deepstack_layer_map: pairs of a hidden state of the tower and a layer of the language model.
inline std::vector<LayerPair> read_layer_map(const Reader& r, std::int64_t states) {
  constexpr const char* key = "deepstack_layer_map";
  if (!r.given(key)) r.fail(key, "missing", "a list of [vision layer, text layer]");
  std::vector<LayerPair> map;
  const auto& list = r.value()[key];
  if (!list.is_array() || list.size() > 1024) r.fail(key, "expected a list of [vision layer, text layer]");
  for (const auto& e : list) {
    if (!e.is_array() || e.size() != 2 || !e[0].is_number_integer() || !e[1].is_number_integer())
      r.fail(key, "expected a list of [vision layer, text layer]");
    map.push_back({e[0].template get<std::int64_t>(), e[1].template get<std::int64_t>()});
    check_feature_layer(r, map.back().state, states, key);
  }
  return map;
}

/// Granite4VisionTextConfig, or Granite's own, which has the same keys.
inline LlamaConfig read_granite4_text(const Reader& t) {
  if (const std::string type = t.string("model_type", "granite4_vision_text");
      type != "granite4_vision_text" && type != "granite")
    t.fail("model_type", "'" + type.substr(0, 64) + "' is not modelled here", "known: granite4_vision_text, granite");
  t.number("logits_scaling", 1.0);
  if (t.is_null("logits_scaling")) t.fail("logits_scaling", "null, but the model computes with it");
  check_static_rope(t);
  return std::get<LlamaConfig>(read_granite(t));
}

/// model_type "granite4_vision". The head is tied by the model's own key alone.
inline Vlm read_granite4_vision(const Reader& r) {
  const Reader t = r.object("text_config");
  Granite4VisionFamily f{.vision = read_granite4_tower(r), .language = read_granite4_text(t)};
  const TowerFacts g = facts(f.vision);
  f.drop_first = read_drop_first(r, "default");
  check_features_per_patch(r, g, f.drop_first);
  f.projector.qformer = read_window_qformer(r, g.hidden);
  f.projector.out = f.language.hidden;
  f.projector.dropout = read_dropout(r, "projector_dropout", 0.1);
  read_windows(r, g.image_size / g.patch_size, f.projector);
  f.layer_map = read_layer_map(r, g.layers);
  f.spatial_state = r.integer("spatial_vision_layer", -1, -1025, 1024);
  check_feature_layer(r, f.spatial_state, g.layers, "spatial_vision_layer");
  f.spatial_targets = r.integers("spatial_target_layers", {12, 15, 18, 21});
  if (f.spatial_targets.size() > 4)
    r.fail("spatial_target_layers", "the model has four spatial projectors", "give four layers at most");
  if (!f.spatial_targets.empty() && f.projector.window != 2 * f.projector.query)
    r.fail("downsample_rate", "the spatial projectors take one of two by two patches", "give one half, as \"4/8\"");
  if (f.layer_map.empty() && f.spatial_targets.empty())
    r.fail("deepstack_layer_map", "no layer gets features of pictures", "name one");
  f.tied = r.boolean("tie_word_embeddings", false);
  const image_processor::Granite4Vision defaults;
  const image_processor::Granite4Vision rule{
      .image_size = g.image_size,
      .patch_size = g.patch_size,
      .class_token = g.class_token,
      .select = f.drop_first ? image_processor::FeatureSelect::drop_first : image_processor::FeatureSelect::full,
      .pinpoints = read_pinpoints(r, defaults.pinpoints, g.image_size),
      .tile = {f.projector.features(), f.projector.features()}};
  Vlm m{.type = "granite4_vision"};
  m.native = {g.image_size, g.image_size};
  for (const auto& s : rule.pinpoints)
    if (s.height == s.width && s.height > m.native.height) m.native = s;
  m.image_processor = rule;
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::Granite4Vision&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::Granite4Vision& rule) { read_anyres_keys(k, rule); }
inline void read_outer_keys(ProcessorKeys& k, image_processor::Granite4Vision& rule) {
  read_tower_keys(k, rule);
  if (!k.given("downsample_rate")) return;
  const std::string rate = k.string("downsample_rate");
  const auto [query, window] = hf::rate_of(rate);
  const std::int64_t side = window == 0 ? 0 : rule.image_size / rule.patch_size * query / window;
  if (side != rule.tile.rows)
    k.differs("downsample_rate", "'" + rate.substr(0, 64) + "'",
              "downsample_rate of config.json leaves " + std::to_string(rule.tile.rows) + " features on a tile's side");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Granite4Vision {
  static constexpr std::string_view folder = "granite4_vision";
  static constexpr std::array types{json::ModelType{.type = "granite4_vision",
                                                    .read = json::hf::read_granite4_vision,
                                                    .recorder = json::RecorderInputs{"anyres.granite4_vision", -1},
                                                    .text_part = "granite4_vision_text"}};
  using Rules = json::Rules<image_processor::Granite4Vision>;
};

}  // namespace vlmest::family
