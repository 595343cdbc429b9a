// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_program.hpp>
#include <vlmest/diagnose/verdict/scores.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE Verdict judge(const Failure& f, const LengthBounds& bounds) {
  using namespace oom_verdict;
  const auto finish = [&](Verdict v) {
    v.live = f.live;
    v.limit = limit(f);
    if (f.told) {
      v.mode = f.told->mode;
      v.mode_by = f.told->by;
    }
    return v;
  };
  if (auto v = judge_engine_pool(f)) return finish(*v);
  if (auto v = judge_program(f)) return finish(*v);
  const std::vector<ScoreMatrix> scores = score_matrices_of_any_model(f, bounds);
  const bool sure = score_ground(f, scores) > ScoreGround::stack;
  if (sure) return finish(*judge_scores(f, scores, false, bounds));
  // Fused attention asks for no more than a copy of its input: so large a request is of the scores it does without.
  if (f.site == AllocationSite::sdpa && f.requested && cut_off::fused_at_most.reached(f.requested->value) &&
      !scores.empty())
    if (auto v = judge_scores(f, scores, false, bounds)) return finish(*v);
  if (!f.others || f.others_deduced)
    if (auto v = gradient_bucket(f)) return finish(*v);
  if (auto v = other_process(f, std::nullopt)) return finish(*v);
  if (auto v = growing_memory(f)) return finish(*v);
  if (auto v = fragmentation(f, std::nullopt)) return finish(*v);
  if (auto v = judge_profile_run(f, {}, true)) return finish(*v);
  if (auto v = judge_attention_call(f)) return finish(*v);
  Verdict v = finish({.cause = stack_cause(f.site, f.phase)});
  // With a snapshot it is known what fills the memory.
  if (!f.live.empty() && f.requested) {
    Hypothesis h{.cause = v.cause == Cause::unknown ? Cause::activations : v.cause};
    h.tensor.bytes = f.requested->value;
    v.cause = blamed(h, f.live, f.allocated->value);
  }
  const bool by_site = f.site != AllocationSite::unknown && !f.outside;
  v.confidence = v.cause == Cause::unknown                               ? 0
                 : f.outside                                             ? confidence(Basis::outside)
                 : f.live.empty() && !tells_what_filled(f.site, f.phase) ? confidence(Basis::last_drop)
                 : by_site                                               ? confidence(Basis::by_site)
                                                                         : confidence(Basis::by_phase);
  const bool weak = v.cause == Cause::unknown || v.cause == Cause::activations;
  if (const Cause shaped = f.made && weak ? shape_cause(f.made->shape) : Cause::unknown; shaped != Cause::unknown) {
    v.cause = shaped;
    v.confidence = confidence(Basis::shape_told);
  }
  v.why = request_words(f);
  v.why += site_words(f);
  if (f.frames.empty() && f.live.empty())
    v.why +=
        f.stack_elsewhere ? "; the frames in this text belong to no out-of-memory message" : "; there is no traceback";
  if (!f.live.empty()) v.why += ". Alive were " + live_words(f.live);
  v.why += ".";
  v.named_by_model = f.tensor && f.telling && !f.made;
  v.why += pieces_words(f);
  return v;
}

VLMEST_INLINE Verdict judge_explained(const Failure& f, const Reading& r) {
  using namespace oom_verdict;
  if (auto v = other_process(f, r.peak)) return *v;
  // Growth that the settings' own peak holds is no leak: a cache fills, a first step makes states.
  if (f.allocated && f.allocated->low > r.peak)
    if (auto v = growing_memory(f)) return *v;
  if (auto v = not_described(f, r)) return *v;
  if (auto v = fragmentation(f, r.peak)) return *v;
  const Hypothesis& h = r.hypotheses.front();
  Verdict v;
  v.cause = blamed(h, r.live, limit(f));
  v.confidence = h.confidence;
  // Hypotheses of one kind agree on the verdict, whichever of them it was.
  for (std::size_t i = 1; i < r.hypotheses.size(); ++i)
    if (r.hypotheses[i].cause == h.cause) v.confidence += r.hypotheses[i].confidence;
  v.confidence = std::min(v.confidence, 1.0) * confidence(ground(f), nearness(f.allocated, h.before));
  // By the size alone, a kind that is more often wrong than right is not named.
  if (!f.allocated && ground(f) != Ground::stack && !cut_off::named.reached(v.confidence)) {
    const std::optional<Cause> states = of_states(f, r);
    v.cause = states.value_or(Cause::unknown);
    if (states)
      v.tensor = h.tensor;
    else
      v.confidence = 0;
    v.why = request_words(f) + "; that is the size of " + size_of_words(r.hypotheses) +
            ". Which of them was asked for, neither a stack nor the memory in use tells" +
            (states ? "; all of them are what a training holds whatever its inputs are" : "") +
            ". The whole run needs " + in_words(r.peak) + "." + pieces_words(f);
    return v;
  }
  v.tensor = h.tensor;
  v.why = "asked for was " + tensor_words(h) + "; " + request_words(f) + " (by the estimate " + in_words(h.before) +
          (r.live.empty() ? "" : ": " + live_words(r.live)) + "). The whole run needs " + in_words(r.peak) + "." +
          pieces_words(f);
  return v;
}

VLMEST_INLINE Verdict judge_unexplained(const Failure& f, const Reading& r) {
  using namespace oom_verdict;
  if (auto v = other_process(f, std::nullopt)) return *v;
  if (auto v = growing_memory(f)) return *v;
  if (auto v = fragmentation(f, std::nullopt)) return *v;
  const std::string needs = " The whole run needs " + in_words(r.peak) + " by these settings.";
  if (r.hypotheses.empty()) {
    Verdict v = judge(f);
    v.why = request_words(f) + (f.tensor ? "; no tensor of these settings has that size" : "; its size is not known") +
            site_words(f) + "." + needs + pieces_words(f);
    if (v.cause == Cause::attention_scores && !f.tensor) v.why += attention_call_words(f);
    return v;
  }
  const Hypothesis& h = r.hypotheses.front();
  const std::string off = " These settings do not explain it: by them " + estimated_words(f, h) + ".";
  if (auto v = not_described(f, r)) return *v;
  if (const auto more = unexplained(f, r)) {
    Verdict v;
    v.cause = Cause::leak;
    v.confidence = confidence(Basis::kept);
    v.why = "these settings explain at most " + in_words(std::max(r.peak, h.before)) + " at their peak, but " +
            in_words(f.allocated->value) + " were allocated: " + in_words(*more) +
            " more are kept alive, by earlier steps or by something else in the process, or the settings are not the "
            "run's.";
    return v;
  }
  const Nearness n = nearness(f.allocated, h.before);
  Verdict v = judge(f);
  if (ground(f) == Ground::stack && v.cause != Cause::unknown) {
    v.confidence = confidence(Ground::stack, n);
    if (!tells_what_filled(f.site, f.phase)) v.confidence = std::min(v.confidence, confidence(Basis::last_drop));
    v.why = request_words(f) +
            "; the stack was making: " + std::string(f.site != AllocationSite::unknown ? name(f.site) : name(f.phase)) +
            "." + off;
    if (h.cause == v.cause) {
      v.tensor = h.tensor;
      v.why = "asked for was " + tensor_words(h) + ", by its size and the stack; " + request_words(f) + "." + off;
    }
  } else {
    // Of the size alone; a kind that is more often wrong than right is not named.
    double share = 0;
    for (const Hypothesis& x : r.hypotheses) share += x.cause == h.cause ? x.confidence : 0;
    v.cause = n == Nearness::near ? blamed(h, r.live, limit(f)) : h.cause;
    v.confidence = std::min(share, 1.0) * confidence(ground(f), n);
    v.why = request_words(f) + ". A tensor of that size is " + tensor_words(h) + "." + off;
    if (!cut_off::named.reached(v.confidence)) {
      v.cause = Cause::unknown;
      v.confidence = 0;
    }
  }
  v.why += needs + pieces_words(f);
  return v;
}

VLMEST_INLINE void set_mode(Verdict& v, const Failure& f, std::optional<Mode> asked, std::optional<Mode> read) {
  if (asked) {
    v.mode = asked;
    v.mode_by = "--phase";
    if (f.told && f.told->mode != *asked)
      v.why += " --phase says " + std::string(name(*asked)) + ", but " + f.told->by + " tells of " +
               std::string(name(f.told->mode)) + ".";
  } else if (f.told) {
    v.mode = f.told->mode;
    v.mode_by = f.told->by;
  } else {
    if (!f.tensor) read.reset();  // without a size both ways of running are read alike
    v.mode = read;
    v.mode_by = read ? "the tensor's size and the memory" : "";
  }
}

}  // namespace vlmest::diagnose
