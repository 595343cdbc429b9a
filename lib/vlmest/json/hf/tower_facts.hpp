// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include <vlmest/json/hf/tower.hpp>

namespace vlmest::json::hf {

/// Facts that every tower's config has.
struct TowerFacts {
  std::int64_t hidden, layers, image_size, patch_size;
  bool class_token;
};
inline TowerFacts facts(const VisionConfig& v) {
  return std::visit(
      [](const auto& g) {
        using G = std::remove_cvref_t<decltype(g)>;
        return TowerFacts{g.hidden, g.layers, g.image_size, g.patch_size,
                          std::is_same_v<G, ClipVision> || std::is_same_v<G, InternVitVision>};
      },
      v);
}

/// vision_feature_select_strategy: whether the tower's first token goes.
inline bool read_drop_first(const Reader& r, std::string_view absent) {
  const std::string select = r.string("vision_feature_select_strategy", absent);
  if (select != "default" && select != "full")
    r.fail("vision_feature_select_strategy", "expected \"default\" or \"full\"");
  return select == "default";
}

}  // namespace vlmest::json::hf
