// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/nn/vision/clip.hpp>
#include <vlmest/nn/vision/intern_vit.hpp>
#include <vlmest/nn/vision/pixtral.hpp>
#include <vlmest/nn/vision/siglip.hpp>

namespace vlmest {

/// Every vision tower. A new one is a header with a config, a make_tower and a forward, and one word in each list.
using VisionConfig = std::variant<ClipVision, SiglipVision, InternVitVision, PixtralVision>;
using VisionTower = std::variant<ClipTower, SiglipTower, InternVitTower, PixtralTower>;

inline VisionTower make_tower(Context& c, const VisionConfig& g) {
  return std::visit([&](const auto& v) -> VisionTower { return make_tower(c, v); }, g);
}
inline TowerOutput forward(Context& c, const VisionTower& t, const TowerInput& input) {
  return std::visit([&](const auto& v) { return forward(c, v, input); }, t);
}
inline Shape pixel_shape(const VisionConfig& g, std::span<const ImageLayout> images) {
  return std::visit([&](const auto& v) { return pixel_shape(v, images); }, g);
}
inline bool takes_image_sizes(const VisionConfig& g) {
  return std::visit([](const auto& v) { return takes_image_sizes(v); }, g);
}

}  // namespace vlmest
