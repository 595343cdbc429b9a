// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/json/hf/llava_parts.hpp>
#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::json::hf {

/// The canvases of image_grid_pinpoints, [height, width] each, or `absent`; throws Error for a canvas that is not whole
/// tiles: its features could not be joined.
inline std::vector<ImageSize> read_pinpoints(const Reader& r, std::vector<ImageSize> absent, std::int64_t tile) {
  const char* const key = "image_grid_pinpoints";
  std::vector<ImageSize> list = std::move(absent);
  if (r.given(key)) {
    const auto& v = r.value()[key];
    const char* const form = "expected a list of [height, width]";
    if (!v.is_array() || v.empty() || v.size() > 4096) r.fail(key, form);
    list.clear();
    for (const auto& e : v) {
      if (!e.is_array() || e.size() != 2 || !e[0].is_number_integer() || !e[1].is_number_integer()) r.fail(key, form);
      for (const auto& side : e)
        if (side < 1 || side > image_processor::max_side) r.fail(key, "a side is out of range");
      list.push_back({e[0].get<std::int64_t>(), e[1].get<std::int64_t>()});
    }
  }
  for (const auto& s : list)
    if (s.height % tile != 0 || s.width % tile != 0)
      r.fail(key, std::to_string(s.height) + "x" + std::to_string(s.width) + " is not whole tiles",
             "give multiples of vision_config.image_size, " + std::to_string(tile));
  return list;
}

/// Tiles can only be joined where each patch has one feature: without the class token, where the tower has one.
inline void check_features_per_patch(const Reader& r, const TowerFacts& g, bool drop_first) {
  if (g.class_token != drop_first)
    r.fail("vision_feature_select_strategy", "leaves other than one feature per patch of a tile",
           "use \"default\" for a tower with a class token and \"full\" for one without");
}

}  // namespace vlmest::json::hf
