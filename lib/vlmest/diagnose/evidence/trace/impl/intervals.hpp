// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include <vlmest/diagnose/evidence/trace/intervals.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE TimeSet united(std::vector<Interval> parts) {
  std::sort(parts.begin(), parts.end());
  TimeSet r;
  for (const Interval& i : parts) {
    if (i.end <= i.begin) continue;
    if (!r.empty() && i.begin <= r.back().end)
      r.back().end = std::max(r.back().end, i.end);
    else
      r.push_back(i);
  }
  return r;
}

VLMEST_INLINE TimeSet intersection(std::span<const Interval> a, std::span<const Interval> b) {
  TimeSet r;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) r.push_back(both);
    a[i].end < b[j].end ? ++i : ++j;
  }
  return r;
}

VLMEST_INLINE TimeSet difference(std::span<const Interval> a, std::span<const Interval> b) {
  TimeSet r;
  std::size_t j = 0;
  for (Interval rest : a) {
    while (j < b.size() && b[j].end <= rest.begin) ++j;
    for (std::size_t k = j; k < b.size() && b[k].begin < rest.end; ++k) {
      if (rest.begin < b[k].begin) r.push_back({rest.begin, b[k].begin});
      rest.begin = std::max(rest.begin, b[k].end);
      if (k > j) j = k;
    }
    if (rest.begin < rest.end) r.push_back(rest);
  }
  return r;
}

}  // namespace vlmest::diagnose
