// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <vlmest/graph/eager/emit.hpp>

/// Pictures whose channels lie next to each other.
namespace vlmest::eager {

/// Strides of x[N, C, H, W] with the channels next to each other.
inline Shape channels_last_strides(const Shape& s) {
  return {checked_mul(s[1], checked_mul(s[2], s[3])), 1, checked_mul(s[3], s[1]), s[1]};
}

/// Whether torch takes x[N, C, H, W] for one with its channels next to each other, gaps or not. A single picture's
/// stride counts, which a view may have made anything (c10/core/MemoryFormat.h, is_channels_last_strides_2d).
inline bool is_channels_last(const Value& x) {
  const Tensor& t = x.tensor();
  if (is_contiguous(t)) return false;
  std::int64_t least = 0;
  for (const int d : {1, 3, 2, 0}) {
    if (t.strides[d] < least || (d == 0 && least == t.strides[1])) return false;
    least = checked_mul(t.strides[d], std::max<std::int64_t>(t.shape[d], 1));
  }
  return true;
}

}  // namespace vlmest::eager
