// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// n rounded up to whole windows.
constexpr std::int64_t padded_to_windows(std::int64_t n, std::int64_t window) {
  return checked_mul((n + window - 1) / window, window);
}

/// modeling_sam.py, SamVisionLayer.window_partition: [N, H, W, C] -> [N * windows, window, window, C]. A map of whole
/// windows is copied by the padding too.
inline Value window_partition(const Value& tokens, std::int64_t window) {
  using namespace eager;
  const std::int64_t n = tokens.size(0), h = tokens.size(1), w = tokens.size(2), channels = tokens.size(3);
  const std::int64_t rows = padded_to_windows(h, window), cols = padded_to_windows(w, window);
  Value x = pad(tokens, {{2, 0, cols - w}, {1, 0, rows - h}});
  x = reshape(std::move(x), {n, rows / window, window, cols / window, window, channels});
  Value windows = contiguous(permute(x, {0, 1, 3, 2, 4, 5}));
  return reshape(std::move(windows), {-1, window, window, channels});
}

/// modeling_sam.py, SamVisionLayer.window_unpartition: back to [N, height, width, C], without what was padded.
inline Value window_unpartition(const Value& windows, std::int64_t window, std::int64_t height, std::int64_t width) {
  using namespace eager;
  const std::int64_t rows = padded_to_windows(height, window), cols = padded_to_windows(width, window);
  const std::int64_t n = windows.size(0) / (rows / window * (cols / window)), channels = windows.size(3);
  Value x = reshape(windows, {n, rows / window, cols / window, window, window, channels});
  x = reshape(contiguous(permute(x, {0, 1, 3, 2, 4, 5})), {n, rows, cols, channels});
  x = contiguous(slice(slice(x, 1, 0, height), 2, 0, width));
  return x;
}

}  // namespace vlmest
