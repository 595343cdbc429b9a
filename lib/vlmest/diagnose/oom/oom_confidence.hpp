// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <vlmest/diagnose/inversion/explained.hpp>

/// How often verdicts were right: what their confidence is taken from.
///
/// The recorded runs of tests/data/oom_runs and oom_held_out were read with the flags that they ran with and with each
/// of up to 13 single changes of them (another batch, type, optimizer, …), with and without their tracebacks; a reading
/// is right where its cause is the recorded one. In the order of their names the runs 1, 3, 5, … were counted (33
/// runs), the runs 2, 4, 6, … (32) were set aside before anything was looked at and only tell how well this holds. The
/// rows are tests/data/oom_confidence/readings.json; oom_confidence_test.cpp counts them again.
namespace vlmest::diagnose {

/// What a verdict stands on besides a size.
enum class Ground : std::uint8_t {
  stack,     ///< the stack tells what was being made, or in which part of a step
  size,      ///< the size alone, or with a stack that says no more than "forward"
  any_small  ///< not even that: 2 or 20 MiB stand for any small tensor
};

/// Readings that were right, of so many.
struct Counted {
  int right = 0, of = 0;
  /// Laplace's rule of succession.
  constexpr double share() const { return (right + 1.0) / (of + 2.0); }
};

namespace oom_confidence {

/// By Ground and by Nearness.
inline constexpr std::array<std::array<Counted, 4>, 3> counts{{
    {{{130, 132}, {61, 74}, {23, 26}, {280, 303}}},
    {{{204, 232}, {38, 69}, {10, 36}, {204, 295}}},
    {{{12, 18}, {2, 5}, {0, 0}, {10, 26}}},
}};
/// Where a single change of the settings explains what they do not, the cause by that change.
inline constexpr Counted changed{0, 0};
/// Where more is alive than the settings explain and no single change of them does: that something is kept.
inline constexpr Counted kept{0, 0};

/// Where a fifth or more of what is reserved is in pieces and neither stack nor settings tell another cause: of the
/// recorded messages alone.
inline constexpr Counted pieces{1, 3};

}  // namespace oom_confidence

constexpr double confidence(Ground g, Nearness n) {
  return oom_confidence::counts[static_cast<std::size_t>(g)][static_cast<std::size_t>(n)].share();
}

}  // namespace vlmest::diagnose
