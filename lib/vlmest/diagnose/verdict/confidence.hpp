// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

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
/// Where a single change of the settings explains what they do not, the cause by that change: by Ground. Counted on the
/// first 45 runs, read while the search for a flag was still being written.
inline constexpr std::array<Counted, 3> changed{{{106, 107}, {129, 172}, {5, 6}}};
/// Scores, by ScoreGround: the stack, all digits of a figure in bytes, more than a device or a buffer may have, large.
/// Of the open half of tests/data/corpus, as everything of Basis that says so.
inline constexpr std::array<Counted, 5> scores{{{0, 0}, {0, 0}, {4, 4}, {3, 3}, {3, 3}}};
/// The first sign of a text, by SignTells, of the open half. The rules were written with these texts in sight, so that
/// the first text of each sign is what its rule was read off: only the others are counted. Who lists reasons is counted
/// on open_3.json, which made it a sign of its own.
inline constexpr std::array<Counted, 6> signs{{{5, 5}, {3, 3}, {0, 1}, {4, 4}, {0, 0}, {0, 0}}};

/// Guesses from what somebody tells, by StoryRule, right among the texts of the open halves of tests/data/corpus
/// (open.json, open_2.json to open_7.json) that they are made on, with the flags of their threads.
inline constexpr std::array<Counted, 33> stories{
    {{20, 23}, {1, 1}, {1, 1}, {1, 1},   {3, 3}, {2, 2},   {9, 9}, {6, 6}, {1, 1}, {3, 3},  {1, 1},
     {7, 7},   {1, 1}, {2, 2}, {3, 3},   {1, 2}, {2, 3},   {7, 8}, {2, 2}, {6, 7}, {1, 1},  {9, 11},
     {5, 6},   {0, 2}, {5, 5}, {15, 20}, {2, 2}, {11, 11}, {3, 5}, {2, 3}, {2, 2}, {6, 13}, {1, 1}}};
/// Those texts were in sight when the rules were written: no such guess is called likelier than not.
inline constexpr double story_at_most = 0.45;

constexpr double of_story(std::size_t rule) { return std::min(stories[rule].share(), story_at_most); }
constexpr double of_sign(RunSign s) { return signs[static_cast<std::size_t>(traits(s).tells)].share(); }

}  // namespace oom_confidence

constexpr double confidence(Ground g, Nearness n) {
  return oom_confidence::counts[static_cast<std::size_t>(g)][static_cast<std::size_t>(n)].share();
}

/// What else a verdict can rest on: one rule alone.
enum class Basis : std::uint8_t {
  kept,                       ///< more is alive than the settings explain, and no change of a flag does
  pieces_of_a_run_that_fits,  ///< the run's own peak would fit, and enough is reserved in pieces
  pieces,                     ///< a fifth of what is reserved is in pieces, and nothing tells another cause
  pieces_of_a_table,          ///< the same by a table, which does not say what was asked for
  largest_piece_known,        ///< the same where the largest piece is known, by a snapshot
  profile_run,                ///< an engine's, by the stack or the line that names it
  default_sequences,          ///< the same by a whole number of its default of sequences
  compiled_program,           ///< what fills a program, by XLA's table of its buffers
  engine_pool,                ///< an engine's pool that is mapped again
  engine_in_trainer,          ///< an engine's frames, where a trainer rolls out with it
  partition,                  ///< a rank's part of all trained parameters, by the size
  by_site,                    ///< what was being made, by the innermost frames alone
  by_phase,                   ///< what the program was doing, by the outer ones
  attention_call,             ///< a call of fused attention whose size is not known
  scores_by_size,             ///< scores, where no other tensor of an inference can have the size
  logits_by_size,             ///< the same of logits of all positions
  shape_told,                 ///< by the shape of the tensor, which the text prints
  bucket,                     ///< a bucket of gradients, by DeepSpeed's defaults
  untold_batch,               ///< the batch that the memory of a training tells, where nobody does
  last_drop,                  ///< a temporary by its stack, which does not tell what filled the device
  outside,                    ///< a library's own request: the stack tells what it served, not what filled the device
  fits_alone,                 ///< other processes: the run, estimated, would fit without them
  others_hold_more,           ///< they hold more than this one
  deduced_to_hold_more,       ///< what is neither free nor this process's tensors does
  others_hold_less,
  steady_growth,         ///< memory at the same point of every step
  growing_log,           ///< memory in the lines of a log
  square_growth,         ///< memory that was measured at lengths that double
  settings_alone,        ///< of a training whose text does not tell pictures and lengths
  host_message,          ///< that the host's memory ran out
  server_message,        ///< that an engine's own budget is too small
  pictures_admitted,     ///< that it leaves nothing for its KV cache, where several pictures a prompt are admitted
  metal_limit,           ///< Metal's, which does not say what was asked for
  little_left,           ///< that an engine's log has next to nothing left for its KV cache
  model_time,            ///< that steps are slow by the model, as they do not wait for their data
  killed_of_one_memory,  ///< a killed process where GPU and host have one memory
  killed_with_room,      ///< a killed process where free(1) shows more than half of the host's memory available
  memory_is_not_said,    ///< a factor: a text that ends before its error may be of something else
  numbers,               ///< that it is not memory but NaN, a loss that jumps and the like
  filled_at_peak         ///< no failure: the largest kind of tensor at the peak
};

/// A basis with the cases that tell how often it is right, or, where they are too few for that, a value set by hand:
/// then `counted` are the cases there are. `where` they are to be found.
struct BasisRow {
  Basis basis;
  Counted counted;
  double by_hand;  ///< 0: the share of the counted cases
  std::string_view where;
};

inline constexpr auto bases = std::to_array<BasisRow>({
    {Basis::kept, {8, 19}, 0, "readings of tests/data/oom_runs, not in the repository"},
    {Basis::pieces_of_a_run_that_fits, {6, 9}, 0, "readings of tests/data/oom_runs, not in the repository"},
    {Basis::pieces, {1, 3}, 0, "the messages of tests/data/oom_runs and oom_held_out"},
    {Basis::pieces_of_a_table, {0, 0}, 0.6, "not measured"},
    {Basis::largest_piece_known, {0, 0}, 0.8, "not measured"},
    {Basis::profile_run, {2, 2}, 0, "tests/data/corpus/open.json"},
    {Basis::default_sequences, {1, 1}, 0, "tests/data/corpus/open.json"},
    {Basis::compiled_program, {3, 3}, 0.6, "tests/data/corpus/open_5.json and open_6.json"},
    {Basis::engine_pool, {1, 1}, 0, "tests/data/corpus/open.json"},
    {Basis::engine_in_trainer, {1, 1}, 0, "tests/data/corpus/open.json"},
    {Basis::partition, {0, 0}, 0.8, "not measured: a size within a fiftieth of a figure of the settings"},
    {Basis::by_site, {50, 61}, 0, "tests/data/oom_runs and oom_held_out 48 of 56, tests/data/corpus/open.json 2 of 5"},
    {Basis::by_phase, {3, 4}, 0, "tests/data/oom_runs and oom_held_out 3 of 3, tests/data/corpus/open.json 0 of 1"},
    {Basis::attention_call, {0, 0}, 0.45, "not measured: no open text has one without its size"},
    {Basis::scores_by_size, {1, 1}, 0.45, "tests/data/cases/xinference3230.txt"},
    {Basis::logits_by_size, {0, 0}, 0.45, "not measured: no open text has one"},
    {Basis::shape_told, {1, 1}, 0, "tests/data/corpus/open_4.json"},
    {Basis::bucket, {1, 1}, 0, "tests/data/corpus/open_3.json"},
    {Basis::untold_batch, {1, 1}, 0.45, "tests/data/corpus/open_4.json"},
    {Basis::last_drop, {0, 4}, 0.45, "tests/data/corpus/open.json; in tests/data/oom_runs mostly right"},
    {Basis::outside, {0, 0}, 0.4, "not measured"},
    {Basis::fits_alone, {0, 0}, 0.95, "not measured"},
    {Basis::others_hold_more, {4, 4}, 0, "tests/data/oom_runs 3 of 3, tests/data/corpus/open.json 1 of 1"},
    {Basis::deduced_to_hold_more, {0, 0}, 0.8, "not measured"},
    {Basis::others_hold_less, {0, 0}, 0.6, "not measured"},
    {Basis::steady_growth, {0, 0}, 0.9, "not measured"},
    {Basis::growing_log, {0, 0}, 0.9, "not measured"},
    {Basis::square_growth, {1, 1}, 0.6, "tests/data/corpus/open_7.json"},
    {Basis::settings_alone, {1, 5}, 0, "tests/data/corpus/open.json"},
    {Basis::host_message, {3, 3}, 0.9, "tests/data/corpus/open.json"},
    {Basis::server_message, {2, 2}, 0.9, "tests/data/corpus/open.json"},
    {Basis::pictures_admitted, {1, 1}, 0.45, "tests/data/corpus/open_7.json"},
    {Basis::metal_limit, {1, 2}, 0.45, "tests/data/corpus/open.json and open_7.json"},
    {Basis::little_left, {1, 1}, 0.6, "tests/data/cases/vllm16570.txt"},
    {Basis::model_time, {0, 0}, 0.4, "not measured"},
    {Basis::killed_of_one_memory, {0, 2}, 0.4, "tests/data/corpus/open_8.json"},
    {Basis::killed_with_room, {0, 0}, 0.4, "not measured"},
    {Basis::memory_is_not_said, {0, 0}, 0.6, "not measured"},
    {Basis::numbers, {0, 0}, 0.9, "not measured"},
    {Basis::filled_at_peak, {0, 0}, 0.5, "not measured"},
});
static_assert([] {
  for (std::size_t i = 0; i < bases.size(); ++i)
    if (bases[i].basis != static_cast<Basis>(i)) return false;
  return bases.size() == static_cast<std::size_t>(Basis::filled_at_peak) + 1;
}());

constexpr double confidence(Basis b) {
  const BasisRow& r = bases[static_cast<std::size_t>(b)];
  return r.by_hand > 0 ? r.by_hand : r.counted.share();
}

}  // namespace vlmest::diagnose
