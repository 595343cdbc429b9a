// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <vlmest/unit/count.hpp>

namespace vlmest::allocator {

/// Where cudaMalloc puts segments: at the lowest gap that a freed segment left, else behind all others. The driver
/// promises no order, and the allocator only uses addresses to choose between cached blocks of equal size, so any fixed
/// rule that keeps segments apart will do; this one is deterministic. Sizes are multiples of 2 MiB, so addresses are.
class AddressSpace {
 public:
  void clear() {
    gaps_.clear();
    top_ = widest_ = 0;
  }

  std::int64_t take(std::int64_t size) {
    std::int64_t widest = 0;
    for (std::size_t g = 0; size <= widest_ && g < gaps_.size(); ++g) {
      const auto width = gaps_[g].end - gaps_[g].begin;
      widest = std::max(widest, width);
      if (width < size) continue;
      const auto address = gaps_[g].begin;
      gaps_[g].begin += size;
      if (gaps_[g].begin == gaps_[g].end) gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(g));
      return address;
    }
    if (size <= widest_) widest_ = widest;
    const auto address = top_;
    top_ = checked_add(top_, size);
    return address;
  }

  void give_back(std::int64_t address, std::int64_t size) {
    const auto end = address + size;
    auto g = std::lower_bound(gaps_.begin(), gaps_.end(), address,
                              [](const Gap& gap, std::int64_t a) { return gap.begin < a; });
    const bool joins_next = g != gaps_.end() && g->begin == end;
    const bool joins_prev = g != gaps_.begin() && std::prev(g)->end == address;
    const auto begin = joins_prev ? std::prev(g)->begin : address;
    widest_ = std::max(widest_, (joins_next ? g->end : end) - begin);
    if (joins_prev && joins_next) {
      std::prev(g)->end = g->end;
      gaps_.erase(g);
    } else if (joins_prev) {
      std::prev(g)->end = end;
    } else if (joins_next) {
      g->begin = address;
    } else {
      gaps_.insert(g, {address, end});
    }
    if (gaps_.back().end == top_) {
      top_ = gaps_.back().begin;
      gaps_.pop_back();
    }
  }

 private:
  struct Gap {
    std::int64_t begin, end;
  };
  std::vector<Gap> gaps_;  ///< by address, never touching each other nor top_
  std::int64_t top_ = 0;
  std::int64_t widest_ = 0;  ///< no gap is wider
};

}  // namespace vlmest::allocator
