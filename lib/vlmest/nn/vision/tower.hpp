// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/nn/vision/clip.hpp>
#include <vlmest/nn/vision/intern_vit.hpp>
#include <vlmest/nn/vision/siglip.hpp>

namespace vlmest {

/// Every vision tower. A new one is a header with a config, a make_tower and a forward, and one word in each list.
using VisionConfig = std::variant<ClipVision, SiglipVision, InternVitVision>;
using VisionTower = std::variant<ClipTower, SiglipTower, InternVitTower>;

inline VisionTower make_vision(Context& c, const VisionConfig& g) {
  return std::visit([&](const auto& v) -> VisionTower { return make_tower(c, v); }, g);
}
inline TowerOutput forward(Context& c, const VisionTower& t, const TowerInput& input) {
  return std::visit([&](const auto& v) { return forward(c, v, input); }, t);
}

}  // namespace vlmest
