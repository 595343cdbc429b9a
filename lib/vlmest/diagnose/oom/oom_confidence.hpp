// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <vlmest/diagnose/inversion/explained.hpp>

/// How often verdicts were right: what their confidence is taken from.
///
/// The recorded runs of tests/data/oom_runs and oom_held_out were read with the flags that they ran with and with each
/// of up to 13 single changes of them (another batch, type, optimizer, ...), with and without their tracebacks; a
/// reading is right where its cause is the recorded one. In the order of their names the runs 1, 3, 5, ... were counted
/// (33 runs), the runs 2, 4, 6, ... (32) were set aside and tell how well this holds. The readings are
/// tests/data/oom_confidence/readings.json; oom_confidence_test.cpp counts them, and has the shares of those set aside.
/// Readings of one run are alike, so that the counts say more than they would of as many runs.
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

/// By Ground and by Nearness. Where a class further off was right more often than a nearer one, both are counted
/// together (near and far, of Ground::stack and any_small): more distance never makes a verdict surer.
inline constexpr std::array<std::array<Counted, 4>, 3> counts{{
    {{{130, 132}, {84, 100}, {84, 100}, {214, 232}}},
    {{{204, 232}, {47, 85}, {11, 42}, {240, 359}}},
    {{{12, 18}, {3, 8}, {3, 8}, {10, 26}}},
}};
// The counts below rest on less: those of `changed` on the first 45 runs, read while the search for a flag was still
// being written; the readings behind `kept` and the two of pieces are few and not in the repository.
/// Where a single change of the settings explains what they do not, the cause by that change: by Ground.
inline constexpr std::array<Counted, 3> changed{{{106, 107}, {129, 172}, {5, 6}}};
/// Where more is alive than the settings explain, and no change of a flag does: that something is kept.
inline constexpr Counted kept{8, 19};
/// Where the run's own peak would fit and enough is reserved in pieces: that the pieces are the cause.
inline constexpr Counted pieces_of_a_run_that_fits{6, 9};
/// Where a fifth or more of what is reserved is in pieces and neither stack nor settings tell another cause: of the
/// recorded messages alone.
inline constexpr Counted pieces{1, 3};

}  // namespace oom_confidence

constexpr double confidence(Ground g, Nearness n) {
  return oom_confidence::counts[static_cast<std::size_t>(g)][static_cast<std::size_t>(n)].share();
}

}  // namespace vlmest::diagnose
