// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/allocator/free_list.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest::allocator {

/// Names an allocation; the empty one (a request for 0 bytes) occupies nothing and may be freed.
struct Block {
  std::int32_t index = none;
  bool operator==(const Block&) const = default;
};

/// A segment (one cudaMalloc) and its blocks by address, as torch.cuda.memory_snapshot() lists them.
struct Segment {
  struct Piece {
    std::int64_t address = 0;
    Bytes size, requested;  ///< requested is 0 while cached
    bool allocated = false;
    bool operator==(const Piece&) const = default;
  };
  std::int64_t address = 0;
  Bytes size;
  Pool pool = Pool::small;
  std::vector<Piece> blocks;
  bool operator==(const Segment&) const = default;
};

}  // namespace vlmest::allocator
