// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <vlmest/diagnose/evidence/text/run_sign.hpp>
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

/// The same for what rests on one rule alone. Measured on the open half of a collection of public failures with settled
/// causes, of which tests/data/corpus/requests.json has those that these rules answer: few cases each, which the
/// rule of succession says. An open count of {0, 0} is one that no case has tried.
namespace open_corpus {
/// Scores, by ScoreGround: the stack, all digits of a figure in bytes, more than a device or a buffer may have, large.
inline constexpr std::array<Counted, 5> scores{{{0, 0}, {0, 0}, {4, 4}, {3, 3}, {3, 3}}};
/// An engine's profile run, by the stack or the line that names it, and by a whole number of its default of sequences.
inline constexpr Counted profile_run{2, 2}, default_sequences{1, 1};
/// An engine's pool that is mapped again.
inline constexpr Counted engine_pool{1, 1};
/// What was being made, by the innermost frames, and what the program was doing, by the outer ones, where no settings
/// are given or none explain it: of the recorded runs (tests/data/oom_runs, oom_held_out) 48 of 56 and 3 of 3, of the
/// open half 2 of 5 and none of 1.
inline constexpr Counted by_site{50, 61}, by_phase{3, 4};
/// Other processes hold more than this one: 3 recorded runs, 1 of the open half.
inline constexpr Counted others_hold_more{4, 4};
/// The first sign of a text, by SignTells. The rules were written with these texts in sight, so that the first text of
/// each sign is what its rule was read off: only the others are counted.
inline constexpr std::array<Counted, 5> signs{{{5, 5}, {3, 3}, {4, 4}, {0, 0}, {0, 0}}};
/// Settings of a training alone, of which the text does not tell pictures and lengths.
inline constexpr Counted settings_alone{1, 5};
}  // namespace open_corpus

/// What no recorded run and no collected case has tried: set by hand, the surer the more of it the figures prove.
namespace not_measured {
/// Other processes hold what this one lacks: the run, estimated, would fit alone; that they hold more is deduced; they
/// hold less.
inline constexpr double fits_alone = 0.95, deduced_to_hold_more = 0.8, others_hold_less = 0.6;
/// Pieces: by a table, and where the largest is known. Growth at the same point of steps.
inline constexpr double pieces_of_a_table = 0.6, largest_piece_known = 0.8, steady_growth = 0.9;
/// A text that ends before its error: that it was memory at all. A killed process where free(1) shows more than half
/// of the host's memory available.
inline constexpr double memory_is_not_said = 0.6, killed_with_room = 0.4;
/// A library's own request, of which the stack tells what it served, not what filled the device.
inline constexpr double outside = 0.4;
}  // namespace not_measured

constexpr double of_sign(RunSign s) { return open_corpus::signs[static_cast<std::size_t>(traits(s).tells)].share(); }

}  // namespace oom_confidence

constexpr double confidence(Ground g, Nearness n) {
  return oom_confidence::counts[static_cast<std::size_t>(g)][static_cast<std::size_t>(n)].share();
}

}  // namespace vlmest::diagnose
