// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <vlmest/nn/vision/packed_attention.hpp>

namespace vlmest {

/// A mask of which patches share a picture, [1, patches, patches], as towers write it that attend to all pictures at
/// once: `filled` ("zeros", "full") makes it, then each picture's block is assigned a number, for which each of a
/// slice's four bounds is read from the device.
inline Value picture_mask(Context& c, const Segments& segments, std::int64_t patches, const char* filled, DType t) {
  using namespace eager;
  Value mask = fill(c.b, filled, {1, patches, patches}, t);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < segments.lengths.size(); ++i) {
    const std::int64_t end = begin + segments.lengths[i], at = static_cast<std::int64_t>(i);
    for (const std::int64_t bound : {at, at + 1, at, at + 1}) item(select(segments.cu_seqlens, 0, bound));
    fill_(slice(slice(mask, 1, begin, end), 2, begin, end));
    begin = end;
  }
  return mask;
}

}  // namespace vlmest
