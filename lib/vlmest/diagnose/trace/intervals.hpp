// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/diagnose/trace/profile_trace.hpp>

/// Sets of time: intervals in order that do not touch. Every function takes such sets and gives one, in linear time.
namespace vlmest::diagnose {

using TimeSet = std::vector<Interval>;

/// The set that any intervals, in any order, cover together. Empty ones vanish.
inline TimeSet united(std::vector<Interval> parts) {
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

inline Ns length(std::span<const Interval> set) {
  Ns sum = 0;
  for (const Interval& i : set) sum += i.length();
  return sum;
}

inline TimeSet intersection(std::span<const Interval> a, std::span<const Interval> b) {
  TimeSet r;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) r.push_back(both);
    a[i].end < b[j].end ? ++i : ++j;
  }
  return r;
}

/// What of `a` is not in `b`.
inline TimeSet difference(std::span<const Interval> a, std::span<const Interval> b) {
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

inline TimeSet gaps(Interval window, std::span<const Interval> set) {
  const Interval whole[] = {window};
  return difference(window.length() > 0 ? std::span<const Interval>(whole) : std::span<const Interval>(), set);
}

}  // namespace vlmest::diagnose
