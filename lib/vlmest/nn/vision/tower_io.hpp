// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/tokens/image.hpp>

namespace vlmest {

/// What a vision tower is called with.
struct TowerInput {
  Value pixels;                         ///< in the tower's own layout
  std::span<const ImageLayout> images;  ///< of the whole batch, in order
  bool keep_hidden_states = false;      ///< output_hidden_states=True
  Value image_sizes;                    ///< int64[images, 2] on the GPU, for towers that take them
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
