// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/square.hpp>
#include <vlmest/nn/tokens/llava_next.hpp>
#include <vlmest/nn/tokens/llava_onevision.hpp>

/// LLaVA-NeXT and LLaVA-OneVision: the model splits the features by its own list of canvases, so that the processor's
/// must be the same.
namespace vlmest::json {

template <class Rule>
void read_anyres_keys(ProcessorKeys& k, const Rule& rule) {
  k.must_be("do_resize", true);
  k.boolean("do_center_crop", true);
  const ProcessorSize size = k.size("size"), crop = k.size("crop_size");
  k.square("crop_size", crop, rule.image_size);
  if (!crop.height)
    k.square("size", {.height = size.shortest_edge ? size.shortest_edge : size.height}, rule.image_size);
  if (!k.given("image_grid_pinpoints")) return;
  const nlohmann::json& list = k.value("image_grid_pinpoints");
  if (!list.is_array() || list.size() > 65536) k.fail("image_grid_pinpoints", "expected a list of [height, width]");
  std::vector<ImageSize> said;
  for (const auto& e : list) {
    if (!e.is_array() || e.size() != 2 || !e[0].is_number_unsigned() || !e[1].is_number_unsigned())
      k.fail("image_grid_pinpoints", "expected a list of [height, width]");
    said.push_back({e[0].template get<std::int64_t>(), e[1].template get<std::int64_t>()});
  }
  if (said != rule.pinpoints)
    k.differs("image_grid_pinpoints", "a list of " + std::to_string(said.size()),
              "image_grid_pinpoints of config.json is another one, of " + std::to_string(rule.pinpoints.size()));
}
inline void read_image_keys(ProcessorKeys& k, tokens::LlavaNext& rule) { read_anyres_keys(k, rule); }
inline void read_image_keys(ProcessorKeys& k, tokens::LlavaOnevision& rule) { read_anyres_keys(k, rule); }

inline void read_outer_keys(ProcessorKeys& k, tokens::LlavaNext& rule) { read_tower_keys(k, rule); }
inline void read_outer_keys(ProcessorKeys& k, tokens::LlavaOnevision& rule) {
  read_tower_keys(k, rule);
  k.same("num_image_tokens", tokens::square_patches(rule.image_size, rule.patch_size).count(), "vision_config");
  const std::string ratio = k.string("vision_aspect_ratio"), own = "anyres_max_" + std::to_string(rule.max_tiles);
  if (!ratio.empty() && ratio != own)
    k.differs("vision_aspect_ratio", "'" + ratio.substr(0, 64) + "'", "config.json makes it '" + own + "'");
}

}  // namespace vlmest::json
