// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <map>
#include <string>

#include <vlmest/family/aria/family.hpp>
#include <vlmest/family/aria/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/aria_text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// A dictionary whose keys are counts, which JSON has as strings, and whose values are counts.
inline std::map<std::int64_t, std::int64_t> read_counts(const Reader& r, const char* key,
                                                        std::map<std::int64_t, std::int64_t> absent) {
  if (!r.given(key)) return absent;
  const Reader d = r.object(key);
  if (d.value().empty() || d.value().size() > 1024) r.fail(key, "expected up to 1024 counts, at least one");
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto& [name, value] : d.value().items()) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
    if (error != std::errc() || end != name.data() + name.size() || n < 1)
      r.fail(key, "'" + name.substr(0, 64) + "' is no count");
    counts[n] = d.integer(name.c_str(), 0, 1, 1 << 20);
    if (counts[n] == 0) d.fail(name.c_str(), "expected a count");  // null
  }
  return counts;
}

/// model_type "aria": transformers 5.17, models/aria/configuration_aria.py, AriaConfig, which takes every vision_config
/// for an idefics3_vision.
inline Vlm read_aria(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  AriaFamily f;
  f.vision = vit(v, Idefics3Vision{}, "gelu_pytorch_tanh");
  if (read_dropout(v, "attention_dropout", 0.0))
    v.fail("attention_dropout", "dropout in this tower is not modelled", "leave it at 0");
  if (r.given("text_config") && !t.given("model_type"))
    t.fail("model_type", "missing: AriaConfig leaves such a text_config as it is, and the model stops at it",
           "give \"aria_text\"");
  check_part(t, "aria_text");
  f.language = aria_text(t);
  f.tied = r.boolean("tie_word_embeddings", false);
  f.projector = {.in = f.vision.hidden, .heads = f.vision.heads, .out = width(f.language)};
  f.projector.queries = read_counts(r, "projector_patch_to_query_dict", f.projector.queries);
  if (r.given("vision_feature_layer") && r.value()["vision_feature_layer"].is_array())
    r.fail("vision_feature_layer", "a list, but the model takes one layer", "give an integer");
  f.feature_layer = r.integer("vision_feature_layer", -1, -(1 << 16), 1 << 16);
  check_feature_layer(r, f.feature_layer, f.vision.layers);
  Vlm m{.type = "aria"};
  m.image_processor = image_processor::Aria{.patch_size = f.vision.patch_size, .queries = f.projector.queries};
  m.native = {980, 980};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Aria& rule) {
  image.longest_edge(rule.image_size);
  image.tiling(rule.tiling);
}
/// transformers 5.17 image_processing_aria.py. AriaProcessor passes max_image_size=980 and split_image=False to every
/// call, which comes before the file (processing_aria.py, _defaults).
inline void read_image_keys(ProcessorKeys& k, image_processor::Aria& rule) {
  const std::int64_t side = k.integer("max_image_size", 980, 1, image_processor::max_side);
  if (side != 490 && side != 980)
    k.fail("max_image_size", std::to_string(side) + ", of which the processor makes nothing", "give 490 or 980");
  if (side != 980) k.note("max_image_size is 490, but the processor passes 980 to every call");
  if (k.boolean("split_image", false))
    k.note("split_image is true, but the processor passes false to every call: pictures stay whole");
  rule.min_size = k.integer("min_image_size", 336, 1, rule.image_size);
  if (!k.given("split_resolutions")) return;
  const nlohmann::json& list = k.value("split_resolutions");
  constexpr const char* expected = "expected a list of [height, width]";
  if (!list.is_array() || list.empty() || list.size() > 65536) k.fail("split_resolutions", expected);
  rule.canvases.clear();
  for (const auto& e : list) {
    if (!e.is_array() || e.size() != 2 || !e[0].is_number_unsigned() || !e[1].is_number_unsigned())
      k.fail("split_resolutions", expected);
    const auto high = static_cast<std::uint64_t>(image_processor::max_side);
    const auto h = e[0].get<std::uint64_t>(), w = e[1].get<std::uint64_t>();
    if (h < 1 || w < 1 || h > high || w > high) k.fail("split_resolutions", "a side is out of range");
    rule.canvases.push_back({static_cast<std::int64_t>(h), static_cast<std::int64_t>(w)});
  }
}
/// size_conversion: tokens by the side of a square.
inline void read_outer_keys(ProcessorKeys& k, image_processor::Aria& rule) {
  if (!k.given("size_conversion")) return;
  const auto& said = k.value("size_conversion");
  if (!said.is_object()) k.fail("size_conversion", "expected an object");
  const std::string side = std::to_string(rule.image_size);
  const auto queries = rule.queries.find(image_processor::square_patches(rule.image_size, rule.patch_size).count());
  if (queries == rule.queries.end()) return;
  ProcessorKeys sizes(said, k.where() + ".size_conversion");
  if (!sizes.given(side.c_str()))
    sizes.fail(side.c_str(), "missing: the processor does not know how many tokens such a picture has");
  sizes.same(side.c_str(), queries->second, "projector_patch_to_query_dict");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Aria {
  static constexpr std::string_view folder = "aria";
  static constexpr std::array types{json::ModelType{
      .type = "aria", .read = json::hf::read_aria, .recorder = json::RecorderInputs{"tiles.aria", 980}}};
  using Rules = json::Rules<image_processor::Aria>;
};

}  // namespace vlmest::family
