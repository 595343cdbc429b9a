// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/allocator/process.hpp>

namespace vlmest {

/// Where each block of a replayed process lies, for comparing two of them: segment, address, bytes, state. What a
/// cached block was last used for may differ, and nobody is told.
inline std::vector<std::vector<std::int64_t>> block_places(const allocator::Process& p) {
  std::vector<std::vector<std::int64_t>> r;
  for (const allocator::Segment& s : p.allocator().segments())
    for (const auto& b : s.blocks)
      r.push_back({s.address, b.address, b.size.value(), static_cast<std::int64_t>(b.state)});
  return r;
}

}  // namespace vlmest
