// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest::diagnose {
namespace story_verdict {

/// A rule with the cause it names, the topic whose words are quoted, and why.
struct Row {
  StoryRule rule;
  Cause cause;
  Topic topic;
  std::string_view why;
};

inline constexpr auto rows = std::to_array<Row>({
    {StoryRule::host, Cause::host_memory, Topic::host, "that is the memory of the host, not of a GPU"},
    {StoryRule::loader_grows, Cause::host_memory, Topic::grows,
     "memory grows where data are loaded: what a loader and its workers keep is in the host's"},
    {StoryRule::others, Cause::other_process, Topic::others, "another process has the device's memory"},
    {StoryRule::fragments, Cause::fragmentation, Topic::fragments, "memory is free in pieces"},
    {StoryRule::states, Cause::optimizer_state, Topic::states, "these are the optimizer's states"},
    {StoryRule::gradients, Cause::gradients, Topic::gradient,
     "these are gradients, or the buckets they are added up in"},
    {StoryRule::logits, Cause::logits, Topic::logits,
     "logits have a row of the whole vocabulary for each token, and a loss makes fp32 copies of them"},
    {StoryRule::grows, Cause::leak, Topic::grows, "memory grows from one step or request to the next"},
    {StoryRule::cache, Cause::kv_cache, Topic::cache, "keys and values of all that was read and answered are kept"},
    {StoryRule::waits, Cause::slow_data, Topic::slow_data, "steps wait for their data"},
    {StoryRule::host_busy, Cause::host_bound, Topic::busy_host,
     "a GPU that waits for a busy CPU is bound by what runs there: inputs, launches or an optimizer that is offloaded"},
    {StoryRule::unfused, Cause::attention_scores, Topic::unfused,
     "attention that is not fused writes its scores out, which grow with the square of the patches or tokens"},
    {StoryRule::vast, Cause::attention_scores, Topic::memory,
     "no other tensor of such a model is as large as this one: it grows with the square of something"},
    {StoryRule::attends, Cause::attention_scores, Topic::attends,
     "what fused attention asks for is as small as its input; more than a GiB are scores"},
    {StoryRule::saves, Cause::weights, Topic::saves, "a checkpoint is written from weights that are gathered"},
    {StoryRule::rollouts, Cause::engine_budget, Topic::rollout,
     "an engine that rolls out takes its share of the device beside the model that is trained"},
    {StoryRule::engine_full, Cause::engine_budget, Topic::serves,
     "an engine takes its share of the device when it starts, and what a request needs beyond it must fit in the rest"},
    {StoryRule::too_large, Cause::weights, Topic::loads,
     "two bytes for each of the parameters that the model is named by are more than the device has"},
    {StoryRule::one_of_several, Cause::weights, Topic::one_device,
     "a model that is made for several GPUs is put on one of them, whose memory its weights fill"},
    {StoryRule::engine_starts, Cause::weights, Topic::starts, "the engine was starting, which loads its weights first"},
    {StoryRule::large_answer, Cause::attention_scores, Topic::answers,
     "hardly a tensor but attention scores is as large"},
    {StoryRule::loading, Cause::weights, Topic::loads, "the model was being loaded"},
    {StoryRule::small_answer, Cause::weights, Topic::answers,
     "in inference requests of this size are mostly single weights of a model that is too large"},
    {StoryRule::middle_answer, Cause::vision_tiles, Topic::pictures,
     "in inference a request of this size is mostly of the patches and tokens of pictures"},
    {StoryRule::some_samples, Cause::activations, Topic::varies,
     "states are there from the first step on: what fails with some samples alone is of their size"},
    {StoryRule::all_weights, Cause::optimizer_state, Topic::all_weights,
     "a training of all weights holds gradients and an optimizer's states, together six to eight times the weights"},
    {StoryRule::batches, Cause::activations, Topic::batches,
     "temporaries grow with the inputs that are run at once; a smaller batch needs less"},
    {StoryRule::pictures, Cause::vision_tiles, Topic::pictures,
     "patches and tokens of pictures are what such a model's memory grows with"},
    {StoryRule::own_size, Cause::vision_tiles, Topic::own_size,
     "this model takes pictures in their own size, so that one large picture has thousands of patches"},
    {StoryRule::answers, Cause::vision_tiles, Topic::answers,
     "nothing else is told: beside its weights an inference holds the patches and tokens of pictures"},
    {StoryRule::engine, Cause::weights, Topic::serves, "nothing else is told: an engine loads its weights first"},
    {StoryRule::trains, Cause::activations, Topic::trains,
     "nothing else is told: what a training keeps for its backward is the most frequent reason"},
    {StoryRule::machine, Cause::host_memory, Topic::machine, "only the memory of the host is told"},
});
static_assert([] {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].rule != static_cast<StoryRule>(i)) return false;
  return rows.size() == story_rules;
}());
constexpr const Row& row(StoryRule r) { return rows[static_cast<std::size_t>(r)]; }

/// By the size of a request without a stack; of a run that nothing says trained, as of an inference.
inline std::optional<StoryRule> by_request(const Story& s, const Failure& f, bool trains, bool answers) {
  if (!f.requested) return std::nullopt;
  const Bytes asked = f.requested->value;
  if (s.has(Topic::attends) && cut_off::scores_of_a_story.reached(asked)) return StoryRule::attends;
  if (trains) return cut_off::scores_in_training.reached(asked) ? std::optional(StoryRule::large_answer) : std::nullopt;
  if (s.has(Topic::loads)) return StoryRule::loading;
  if (s.has(Topic::serves)) {
    const bool full = s.has(Topic::answered) || !cut_off::small_beside_an_engine.reached(asked);
    return full ? std::optional(StoryRule::engine_full) : std::nullopt;
  }
  // With a stack that names something, a size says less.
  if (!answers && !f.frames.empty()) return std::nullopt;
  if (cut_off::scores_in_inference.reached(asked)) return StoryRule::large_answer;
  return cut_off::single_weight.reached(asked) ? StoryRule::middle_answer : StoryRule::small_answer;
}

/// Bytes of the GPU: by a flag, by the message, as told, or as most have.
inline double device_of(const Story& s, const StoryContext& c) {
  if (c.device > 0) return c.device;
  if (c.failure != nullptr && c.failure->total) return static_cast<double>(c.failure->total->value.value());
  if (s.device > 0) return s.device;
  return static_cast<double>(cut_off::device_not_told.value.value());
}

}  // namespace story_verdict

VLMEST_INLINE std::optional<StoryRule> story_rule(const Story& s, const StoryContext& c) {
  using namespace story_verdict;
  const bool memory = c.says_memory || c.failure != nullptr;
  const bool trains = c.mode ? *c.mode == Mode::training : s.has(Topic::trains, Topic::all_weights);
  const bool answers =
      c.mode ? *c.mode == Mode::inference : !trains && s.has(Topic::answers, Topic::serves, Topic::hosts);
  if (c.failure == nullptr && s.has(Topic::host, Topic::killed)) return StoryRule::host;
  const bool of_memory = memory || s.has(Topic::memory);
  if (c.failure == nullptr && of_memory && s.has(Topic::grows) && s.has(Topic::slow_data))
    return StoryRule::loader_grows;
  if (s.has(Topic::fragments) && memory) return StoryRule::fragments;
  if (s.has(Topic::states) && memory) return StoryRule::states;
  if (s.has(Topic::gradient) && memory) return StoryRule::gradients;
  if (s.has(Topic::logits)) return StoryRule::logits;
  if (s.has(Topic::grows) && of_memory) return StoryRule::grows;
  if (s.has(Topic::others) && of_memory) return StoryRule::others;
  // Before its cache is made an engine measures itself: who tells of that, tells when it failed.
  if (memory && !trains && s.has(Topic::profiles) && s.has(Topic::serves)) return StoryRule::engine_starts;
  if (s.has(Topic::cache) && memory && !trains) return StoryRule::cache;
  if (!memory && s.has(Topic::slow) && s.has(Topic::slow_data)) return StoryRule::waits;
  if (!memory && s.has(Topic::busy_host)) return StoryRule::host_busy;
  const bool large =
      c.failure == nullptr || !c.failure->requested || cut_off::scores_of_a_story.reached(c.failure->requested->value);
  if (s.has(Topic::unfused) && large && of_memory) return StoryRule::unfused;
  const bool one_tensor = c.failure == nullptr || !c.failure->program;
  if (one_tensor && cut_off::quadratic.reached(Bytes(static_cast<std::int64_t>(std::min(s.largest, 9e18)))))
    return StoryRule::vast;
  if (s.has(Topic::saves) && memory) return StoryRule::saves;
  if (memory && (c.with_engine || (s.has(Topic::rollout) && s.has(Topic::serves)))) return StoryRule::rollouts;
  if (c.named) return std::nullopt;
  const double device = device_of(s, c);
  const int devices = s.has(Topic::one_device) ? 1 : std::max(c.gpus > 0 ? c.gpus : s.gpus, 1);
  const double parameters = c.parameters > 0 ? std::max(c.parameters, s.named) : s.parameters;
  // What adapters leave as it is stands whole on each GPU, where nothing divides it.
  const int holders = trains && !s.has(Topic::sharded) ? 1 : devices;
  const bool whole = !trains || (s.has(Topic::adapters) && !s.has(Topic::offloads));
  const bool too_large = of_memory && whole && !s.has(Topic::few_bits) &&
                         cut_off::weights_fill.reached(2 * parameters / (device * holders));
  if (c.failure != nullptr) {
    // A request of the size of a weight tells less than weights that do not fit.
    const bool small = c.failure->requested && !cut_off::scores_of_a_story.reached(c.failure->requested->value);
    if (too_large && small) return StoryRule::too_large;
    if (const auto r = by_request(s, *c.failure, trains, answers)) return r;
  }
  // As large an allocation that a sentence speaks of.
  if (c.failure == nullptr && of_memory && answers && !s.has(Topic::serves, Topic::loads) &&
      cut_off::scores_in_inference.reached(Bytes(static_cast<std::int64_t>(std::min(s.largest, 9e18)))))
    return StoryRule::large_answer;
  if (too_large) return StoryRule::too_large;
  if (memory && !trains && s.has(Topic::one_device)) return StoryRule::one_of_several;
  if (memory && !trains && s.has(Topic::starts)) {
    if (!s.has(Topic::answered)) return StoryRule::engine_starts;
    return s.has(Topic::pictures) ? StoryRule::pictures : StoryRule::engine_full;
  }
  if (memory && s.has(Topic::loads)) return StoryRule::loading;
  if (memory && trains && s.has(Topic::varies)) return StoryRule::some_samples;
  if (trains && s.has(Topic::all_weights) && !s.has(Topic::offloads)) return StoryRule::all_weights;
  // Weights and gradients of two bytes and twelve of states, where the host does not hold them: over all GPUs, or on
  // each where nothing is divided.
  const double gpus = !s.has(Topic::sharded) ? 1 : c.gpus > 0 ? c.gpus : s.gpus;
  if (memory && trains && gpus > 0 && !s.has(Topic::adapters, Topic::few_bits) && !s.has(Topic::offloads) &&
      cut_off::states_fill.reached(16 * parameters / (device * gpus)))
    return StoryRule::all_weights;
  // transformers' own attention, on a GPU that has no kernel which does without scores.
  if (memory && answers && !s.has(Topic::serves) && s.has(Topic::old_gpu) && s.has(Topic::pictures, Topic::own_size))
    return StoryRule::unfused;
  if (memory && !trains && s.has(Topic::batches) && !s.has(Topic::serves)) return StoryRule::batches;
  if (s.has(Topic::pictures) && of_memory) return StoryRule::pictures;
  if (memory && s.has(Topic::own_size) && (trains || !s.has(Topic::serves))) return StoryRule::own_size;
  if (memory && answers && !s.has(Topic::serves)) return StoryRule::answers;
  if (memory && !trains && s.has(Topic::serves)) return StoryRule::engine;
  // What a training keeps is torch's: its allocator would have spoken.
  if (memory && trains && !(c.failure != nullptr && c.failure->outside)) return StoryRule::trains;
  if (!memory && s.has(Topic::machine)) return StoryRule::machine;
  return std::nullopt;
}

VLMEST_INLINE Cause cause_of(StoryRule r, const Story& s) {
  const bool pictures = s.has(Topic::pictures, Topic::own_size);
  if (r == StoryRule::some_samples && pictures) return Cause::vision_tiles;
  // vLLM runs its largest inputs before it serves, and multimodal ones fail there more often than at loading.
  const auto& engine = s[Topic::serves];
  if ((r == StoryRule::engine_starts || r == StoryRule::engine) && engine && engine->words == "vllm")
    return Cause::profile_run;
  return story_verdict::row(r).cause;
}

VLMEST_INLINE std::string_view reason(StoryRule r) { return story_verdict::row(r).why; }

VLMEST_INLINE bool speaks_of_logits(const Story& s, const Failure& f, std::optional<Mode> mode) {
  return f.frames.empty() && s.has(Topic::logits) && !s.has(Topic::unfused) && mode != Mode::inference;
}

VLMEST_INLINE std::optional<Verdict> judge_story(const Story& s, const StoryContext& c) {
  const auto rule = story_rule(s, c);
  if (!rule) return std::nullopt;
  const story_verdict::Row& row = story_verdict::row(*rule);
  Verdict v{.cause = cause_of(*rule, s), .confidence = oom_confidence::of_story(static_cast<std::size_t>(*rule))};
  const auto& told = s.has(row.topic) ? s[row.topic] : s[Topic::killed];
  v.why = told ? "By \"" + told->words + "\" in line " + std::to_string(told->line) + ": " : "By the kind of run: ";
  v.why += row.why;
  if (v.cause == Cause::profile_run)
    v.why += ", and then runs its largest inputs, where multimodal ones fail more often";
  v.why += ". That is a guess from words.";
  return v;
}

}  // namespace vlmest::diagnose
