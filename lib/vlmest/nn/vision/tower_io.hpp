// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <vlmest/graph/builder.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// What a vision tower is called with.
struct TowerInput {
  Value pixels;                         ///< in the tower's own layout
  std::span<const ImageLayout> images;  ///< of the whole batch, in order
  bool keep_hidden_states = false;      ///< output_hidden_states=True
  Value image_sizes;                    ///< int64[images, 2] on the GPU, for towers that take them
  /// Which hidden states the caller reads; negative numbers count from the end. Needed where there are several.
  std::span<const std::int64_t> read_states{};
  bool gradient_as_result = false;  ///< gradients of the layers' results lie as these do, else row-major

  /// Whether the caller reads the state that layer i of n starts from.
  bool reads_input_of(std::size_t i, std::size_t n) const {
    return std::any_of(read_states.begin(), read_states.end(), [&](std::int64_t s) {
      return static_cast<std::int64_t>(i) == (s < 0 ? s + static_cast<std::int64_t>(n) + 1 : s);
    });
  }
};

/// What it returns; all of it stays alive as long as the caller keeps this.
struct TowerOutput {
  Value last;                        ///< last_hidden_state
  Value pooled;                      ///< pooler_output, where the tower computes one
  std::vector<Value> hidden_states;  ///< the first layer's input and every layer's output
};

/// pixel_values of towers that see square tiles: [tiles, channels, side, side]. Others have an overload beside their
/// config.
template <class Vision>
Shape pixel_shape(const Vision& g, std::span<const ImageLayout> images) {
  std::int64_t tiles = 0;
  for (const auto& i : images) tiles = checked_add(tiles, i.tiles);
  return {tiles, g.channels, g.image_size, g.image_size};
}
/// Whether the processor leaves images in their own sizes and hands these over with the pixels; an overload says yes.
template <class Vision>
constexpr bool takes_image_sizes(const Vision&) {
  return false;
}

}  // namespace vlmest
