// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/diagnose/verdict/sign_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace sign_verdict {

inline std::string of_facts(const std::vector<LogFact>& facts) {
  std::string r;
  for (const auto& [name, words] : {std::pair<std::string_view, const char*>{"weights", "the weights take "},
                                    {"activation_peak", "the peak of the activations "},
                                    {"non_torch", "what is not torch's "},
                                    {"kv_cache", "left for the KV cache "},
                                    {"compute_buffer", "a compute buffer "}})
    if (const auto bytes = elsewhere::fact(facts, name))
      r += (r.empty() ? " By the log " : ", ") + (words + in_words(*bytes));
  return r.empty() ? r : r + ".";
}

}  // namespace sign_verdict

VLMEST_INLINE bool trains_with_engine(std::string_view text) {
  text = text.substr(0, 16 << 20);
  for (const std::string_view w :
       {"verl/",           "(TaskRunner pid=", "actor_rollout",    "openrlhf",    "raysubmit",       "swift rollout",
        "roll/",           "namespace: roll",  "slime/",           "GRPOTrainer", "grpo_trainer.py", "use_vllm",
        "fsdp_workers.py", "vllm_rollout",     "sharding_manager", "wake_up",     "open_r1",         "open-r1",
        "easyr1",          "EasyR1",           "trl/trainer/grpo"})
    if (const auto at = text.find(w); at != std::string_view::npos && !is_turned_off(text.substr(at + w.size())))
      return true;
  return false;
}

VLMEST_INLINE std::optional<Verdict> judge_signs(const std::vector<FoundSign>& signs, const std::vector<LogFact>& facts,
                                                 bool says_memory, bool with_engine) {
  using namespace sign_verdict;
  const FoundSign* first = nullptr;
  // What failed comes before what was slow or only done.
  for (const FoundSign& f : signs)
    if (tells_failure(f.sign) && first == nullptr) first = &f;
  for (const FoundSign& f : signs)
    if (first == nullptr) first = &f;
  if (first == nullptr) return std::nullopt;
  const bool place = traits(first->sign).tells == SignTells::place;
  const bool roomy =
      first->sign == RunSign::killed && first->numbers.size() == 1 && cut_off::roomy.reached(first->numbers[0]);
  Verdict v{.cause = cause_of(first->sign), .confidence = oom_confidence::of_sign(first->sign)};
  if (first->sign == RunSign::engine_weights && with_engine) v.cause = Cause::engine_budget;
  // The text does not say that it was memory; who asks suspects so.
  if (place && !says_memory) v.confidence *= confidence(Basis::memory_is_not_said);
  if (first->sign == RunSign::metal_commands) v.confidence = confidence(Basis::metal_limit);
  if (first->sign == RunSign::busy_model) v.confidence = confidence(Basis::model_time);
  if (roomy) v.confidence = confidence(Basis::killed_with_room);
  v.why = words_of(*first) + " (line " + std::to_string(first->line) + ").";
  if (roomy)
    v.why += " But free(1) shows " + whole(100 * first->numbers[0]) +
             " % of the memory available, before it or after: a limit of the job's own, or somebody's kill.";
  if (first->sign == RunSign::engine_weights && with_engine)
    v.why += " It is the engine of the rollouts, which holds the model a second time beside the one that is trained.";
  if (place && !says_memory) v.why += " The text ends before its error: this holds if it was a lack of memory.";
  v.why += of_facts(facts);
  for (const FoundSign& f : signs)
    if (&f != first && cause_of(f.sign) != v.cause)
      v.remarks.push_back("line " + std::to_string(f.line) + ": " + words_of(f));
  return v;
}

VLMEST_INLINE void name_profile_run(Verdict& v, const Failure& f, const std::vector<LogFact>& facts) {
  if (f.phase != RunPhase::server_profile) return;
  switch (v.cause) {
    case Cause::activations:
    case Cause::vision_tiles:
    case Cause::logits:
    case Cause::unknown: break;
    default: return;
  }
  const std::string was(name(v.cause));
  if (v.cause != Cause::unknown) v.why += " Of its kind it is one of " + was + ".";
  v.cause = Cause::profile_run;
  v.confidence = std::max(v.confidence, confidence(Basis::profile_run));
  v.why +=
      " The engine was in its profile run, over the largest inputs that its settings admit: fewer or smaller pictures "
      "at once make it smaller.";
  for (const auto& [fact, words] : {std::pair<std::string_view, const char*>{"encoder_tokens", "tokens of pictures"},
                                    {"encoder_profile_items", "dummy pictures"}})
    if (const auto n = elsewhere::count(facts, fact)) v.why += " It had " + sign_verdict::whole(*n) + " " + words + ".";
}

VLMEST_INLINE void name_rollout_engine(Verdict& v, const Failure& f) {
  const bool engine = std::any_of(f.frames.begin(), f.frames.end(), [](const Frame& x) {
    return x.file.find("/vllm/") != std::string::npos || x.file.find("/sglang/") != std::string::npos;
  });
  // What a size or other processes prove stays.
  const bool open = v.cause == Cause::unknown || v.cause == Cause::activations || v.cause == Cause::vision_tiles ||
                    v.cause == Cause::weights || v.cause == Cause::profile_run;
  if (!engine || !open) return;
  if (v.cause != Cause::unknown) v.why += " Of its kind it is one of " + std::string(name(v.cause)) + ".";
  v.cause = Cause::engine_budget;
  v.confidence = confidence(Basis::engine_in_trainer);
  v.why +=
      " It is in the engine of the rollouts, whose weights and cache come beside the model that is trained: a smaller "
      "share (gpu_memory_utilization) and smaller pictures leave room.";
}

VLMEST_INLINE std::vector<std::string> second_remarks(const Verdict& v, const Failure& f) {
  std::vector<std::string> r;
  if (!f.requested) return r;
  const Bytes asked = f.requested->value;
  const Bytes free = f.free ? f.free->value : Bytes{};
  // Only what is reserved beside tensors can be in pieces: what the driver has free it gives as one.
  if (v.cause != Cause::fragmentation && f.unallocated && f.unallocated->value + free >= asked && free < asked)
    r.push_back("fragmentation has a part: " + in_words(f.unallocated->value) +
                " are reserved and not in use, with the " + in_words(free) + " that are free enough for the " +
                in_words(asked) + " asked for, but not in one piece");
  if (v.cause != Cause::other_process && f.others && !f.others_deduced && free < asked &&
      f.others->value + free >= asked)
    r.push_back("other processes hold " + in_words(f.others->value) + " of this device: without them the " +
                in_words(asked) + " would have been there");
  return r;
}

}  // namespace vlmest::diagnose
