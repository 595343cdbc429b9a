// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::image_processor {

/// BLIP-2 and InstructBLIP: one square, read by the Q-Former into a fixed count of query tokens.
struct Blip2 {
  std::int64_t image_size = 224;
  std::int64_t patch_size = 14;
  std::int64_t query_tokens = 32;  ///< num_query_tokens
};

/// transformers 5.17 processing_blip_2.py, Blip2Processor.__call__; processing_instructblip.py; the tower has a class
/// token.
constexpr ImageLayout layout(const Blip2& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + 1;
  l.llm_tokens = check("num_query_tokens", r.query_tokens);
  return l;
}

/// Every picture becomes one square of fixed size.
inline std::vector<Blip2> lower(const Blip2&, const ImageLayout&) { return {}; }
inline std::string limit_line(const Blip2&) { return {}; }

}  // namespace vlmest::image_processor
