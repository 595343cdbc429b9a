// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/json/hf/intern_vit.hpp>
#include <vlmest/json/hf/vision.hpp>

namespace vlmest::json::hf {

/// One vision tower's model_type and its reader. A new one is one line.
struct TowerEntry {
  std::string_view type;
  VisionConfig (*read)(const Reader&);
};
inline constexpr std::array towers{
    TowerEntry{"clip_vision_model", read_clip},
    TowerEntry{"siglip_vision_model", read_siglip},
    TowerEntry{"pixtral", read_pixtral},
    TowerEntry{"internvl_vision", read_intern_vit},
};

/// The vision_config `r` of model_type `type`; throws Error naming the known ones.
inline VisionConfig read_tower(const Reader& r, std::string_view type) {
  std::string known;
  for (const auto& e : towers) {
    if (e.type == type) return e.read(r);
    known += (known.empty() ? "" : ", ") + std::string(e.type);
  }
  r.fail("model_type", "unknown vision tower '" + std::string(type) + "'", "known: " + known);
}

}  // namespace vlmest::json::hf
