// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <variant>
#include <vector>

#include <vlmest/nn/family/scatter.hpp>

/// What families share whose videos are frames of one square each, in an input of their own.
namespace vlmest {

/// pixel_values_videos [videos, frames, channels, side, side], or nothing without videos.
inline Value make_video_pixels(Context& c, const VisionConfig& vision, const Sequences& s) {
  if (s.videos.empty()) return {};
  const Shape one = std::visit([&](const auto& v) { return pixel_shape(v, s.videos); }, vision);
  const auto n = static_cast<std::int64_t>(s.videos.size());
  return c.b.existing("pixel_values_videos", Role::input, c.dtype(), {n, one[0] / n, one[1], one[2], one[3]});
}

/// The states that vision_feature_layer names: one as it is, those of a list side by side.
inline Value selected_states(const TowerOutput& tower, std::span<const std::int64_t> layers, bool list) {
  if (!list) return hidden_state(tower, layers.front());
  std::vector<Value> pool;
  for (const std::int64_t l : layers) pool.push_back(hidden_state(tower, l));
  return eager::cat(pool, -1);
}

}  // namespace vlmest
