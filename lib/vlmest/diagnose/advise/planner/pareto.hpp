// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {

/// Indices of the points that no other point beats: none is as low in both coordinates and lower in one. Of equal
/// points the first stays. By the first coordinate.
template <class A, class B>
std::vector<std::size_t> pareto_front(const std::vector<std::pair<A, B>>& points) {
  std::vector<std::size_t> order(points.size()), front;
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_stably(order, [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  for (const std::size_t i : order)
    if (front.empty() || points[i].second < points[front.back()].second) front.push_back(i);
  return front;
}

}  // namespace vlmest::diagnose
