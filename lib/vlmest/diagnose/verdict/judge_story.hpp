// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <vlmest/diagnose/evidence/text/run_sign.hpp>
#include <vlmest/diagnose/evidence/text/story.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// What a failure probably was, by what somebody tells of it, where neither an allocator's figures nor a stack name it.
namespace vlmest::diagnose {

/// The rules, in the order in which they are asked: what is told outright first, then what the kind of run makes
/// likely.
enum class StoryRule : std::uint8_t {
  host,            ///< the host's memory, or a killed process
  loader_grows,    ///< memory that grows where a loader is spoken of: what it keeps is on the host
  others,          ///< another process
  fragments,       ///< pieces
  states,          ///< an optimizer's states
  gradients,       ///< gradients
  logits,          ///< a head's output
  grows,           ///< memory that grows
  cache,           ///< keys and values, spoken of where a model answers
  waits,           ///< slow steps, and a loader
  host_busy,       ///< a CPU at its limit beside a GPU that is not
  unfused,         ///< attention that writes its scores
  vast,            ///< an allocation of more than a GPU has: only what grows with the square of a length is so large
  attends,         ///< a source line of attention that asked for more than its result has
  saves,           ///< a checkpoint: weights are gathered
  rollouts,        ///< reinforcement learning beside an engine
  engine_full,     ///< a small request that fails in an engine: it has taken its share of the device before
  too_large,       ///< a model whose weights alone are larger than the device
  one_of_several,  ///< a model on one of several GPUs
  engine_starts,   ///< an engine that does not start
  large_answer,    ///< a large request in inference without an engine: scores
  loading,         ///< a model that does not answer: its weights
  small_answer,    ///< a small request in inference without an engine: of the size of a weight
  middle_answer,   ///< one between them: of a picture's patches and tokens
  some_samples,    ///< fails with some samples: what is of their size
  all_weights,     ///< a training of all weights: states are six to eight times the weights
  batches,         ///< an inference without an engine over a batch of many inputs
  pictures,        ///< pictures are spoken of
  own_size,        ///< a model that takes pictures in their own size
  answers,         ///< an inference without an engine otherwise
  engine,          ///< an engine otherwise
  trains,          ///< a training otherwise
  machine          ///< only the machine's RAM is told
};
inline constexpr std::size_t story_rules = static_cast<std::size_t>(StoryRule::machine) + 1;

/// What is known of a run beside the words.
struct StoryContext {
  std::optional<Mode> mode;          ///< by a flag, a frame or the program's name
  bool says_memory = false;          ///< memory ran out, by a message or by somebody
  bool with_engine = false;          ///< trains_with_engine()
  bool named = false;                ///< by the failure's figures or stack: then only what is told outright counts
  const Failure* failure = nullptr;  ///< of an allocator's message
  double parameters = 0;             ///< of the model, where it is known
  double device = 0;                 ///< bytes of memory of the device; 0: not known
  int gpus = 0;                      ///< by a flag or a setting; 0: not known
};

/// The first rule that applies.
std::optional<StoryRule> story_rule(const Story& s, const StoryContext& c);

Cause cause_of(StoryRule r, const Story& s);

/// What its guesses are known by: the sentence that each gives as its reason.
std::string_view reason(StoryRule r);

/// Whether the words speak of logits, where a size alone was read as attention scores: a loss of a long sequence asks
/// for as much.
bool speaks_of_logits(const Story& s, const Failure& f, std::optional<Mode> mode);

/// The guess of that rule, as sure as it was right on the open texts of tests/data/corpus, and never as sure as what
/// is read off figures: rules that were written with those texts in sight hold less often for others.
std::optional<Verdict> judge_story(const Story& s, const StoryContext& c);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_story.hpp>
#endif
