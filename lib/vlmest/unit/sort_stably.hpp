// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <vlmest/unit/call_ref.hpp>

namespace vlmest {

/// The numbers 0 to count - 1 as `before` orders them; equal ones stay in their order.
inline std::vector<std::size_t> stable_order(std::size_t count, CallRef<bool, std::size_t, std::size_t> before) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

/// std::stable_sort of everything in a vector. The sorting is compiled once and not for each type, of which there are
/// dozens: here their places are sorted, and then each value is moved once.
template <class Vector, class Less>
void sort_stably(Vector& all, Less less) {
  std::vector<std::size_t> from =
      stable_order(all.size(), [&](std::size_t a, std::size_t b) -> bool { return less(all[a], all[b]); });
  for (std::size_t first = 0; first < from.size(); ++first) {
    if (from[first] == first) continue;
    auto moved = std::move(all[first]);
    std::size_t to = first;
    for (std::size_t next = from[to]; next != first; next = from[to]) {
      all[to] = std::move(all[next]);
      from[to] = to;
      to = next;
    }
    all[to] = std::move(moved);
    from[to] = to;
  }
}

}  // namespace vlmest
