// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// modeling_internvl.py, InternVLModel.pixel_shuffle, and modeling_llama4.py, pixel_shuffle: [N, H, W, C] -> [N, H /
/// merge, W / merge, C * merge^2], two copies.
inline Value pixel_shuffle(Value arg, std::int64_t merge) {
  using namespace eager;
  Value x = std::move(arg);
  const std::int64_t n = x.size(0), rows = x.size(1), cols = x.size(2), channels = x.size(3);
  x = view(x, {n, rows, cols / merge, channels * merge});
  x = contiguous(permute(x, {0, 2, 1, 3}));
  x = view(x, {n, cols / merge, rows / merge, channels * merge * merge});
  x = contiguous(permute(x, {0, 2, 1, 3}));
  return x;
}

}  // namespace vlmest
