// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>

#include "family.hpp"
#include "rule.hpp"

namespace toy {

inline vlmest::Vlm read(const vlmest::json::Reader& r) {
  using namespace vlmest::json;
  const Reader text = r.object("text_config");
  Family f;
  f.vision = std::get<vlmest::SiglipVision>(hf::read_siglip(r.object("vision_config")));
  f.language = hf::read_decoder(text, text.string("model_type", "llama"));
  f.projector = {.in = f.vision.hidden, .out = width(f.language)};
  vlmest::Vlm m{.type = "toy"};
  m.image_processor = Rule{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

inline void read_image(vlmest::json::DescriptionImage& image, Rule& rule) { image.max_tiles(rule.max_tiles); }
inline void read_image_keys(vlmest::json::ProcessorKeys& k, Rule& rule) {
  rule.max_tiles = k.integer("max_tiles", rule.max_tiles, 1, 64);
}
inline void read_outer_keys(vlmest::json::ProcessorKeys&, Rule&) {}

struct Row {
  static constexpr std::string_view folder = "toy";
  static constexpr std::array types{vlmest::json::ModelType{
      .type = "toy", .read = read, .recorder = vlmest::json::RecorderInputs{"tiles.toy", 28}, .text_part = "toy_text"}};
  using Rules = vlmest::json::Rules<Rule>;
};

}  // namespace toy
