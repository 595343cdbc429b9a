// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

/// Sets of time: intervals in order that do not touch. Every function takes such sets and gives one, in linear time.
namespace vlmest::diagnose {

using TimeSet = std::vector<Interval>;

/// The set that any intervals, in any order, cover together. Empty ones vanish.
TimeSet united(std::vector<Interval> parts);

inline Ns length(std::span<const Interval> set) {
  Ns sum = 0;
  for (const Interval& i : set) sum += i.length();
  return sum;
}

TimeSet intersection(std::span<const Interval> a, std::span<const Interval> b);

/// What of `a` is not in `b`.
TimeSet difference(std::span<const Interval> a, std::span<const Interval> b);

inline TimeSet gaps(Interval window, std::span<const Interval> set) {
  const Interval whole[] = {window};
  return difference(window.length() > 0 ? std::span<const Interval>(whole) : std::span<const Interval>(), set);
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/intervals.hpp>
#endif
