// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <vlmest/diagnose/inversion/attention_heads.hpp>
#include <vlmest/diagnose/inversion/multiples.hpp>
#include <vlmest/diagnose/inversion/one_change.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_program.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/diagnose/verdict/scores.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {

/// Whether a run can have the inputs of a solution: no longer sequences than the model has positions, and, in a vision
/// tower, other pictures.
inline bool possible(const Solution& s, const Vlm& vlm, const Failure& f) {
  if (s.seq > vlm.positions.value_or(score_matrix::most_positions)) return false;
  return f.phase != RunPhase::vision_forward || s.unknown != Unknown::text_tokens;
}

VLMEST_INLINE LengthBounds length_bounds(const Plan& p) {
  return {.seq = p.seq, .images = p.images, .element = bits(p.dtype) / 8, .batch = p.batch};
}

VLMEST_INLINE Verdict judge(const Failure& f, const Settings& settings, const Device& device, std::optional<Mode> mode,
                            Estimator& estimator) {
  std::vector<Mode> modes;
  if (mode)
    modes = {*mode};
  else if (f.told)
    modes = {f.told->mode};
  else
    modes = {Mode::inference, Mode::training};
  std::optional<Reading> given;
  for (const Mode m : modes) {
    try {
      Reading r = read_failure(settings.vlm, settings.plan, device, m, f, estimator);
      if (!given || (explains(f, r) && !explains(f, *given)) ||
          (explains(f, r) == explains(f, *given) && r.agreement() > given->agreement()))
        given = std::move(r);
    } catch (const Error&) {
      if (m == modes.back() && !given) throw;
    }
  }
  // What only the square of a length reaches, and what an engine asks for to measure itself, the settings' own inputs
  // need not explain.
  const std::vector<ScoreMatrix> scores =
      score_matrices(f, attention_heads(settings.vlm, settings.plan, device), length_bounds(settings.plan));
  Explanation e{.holds = explains(f, *given), .estimated = {}, .changes = {}};
  if (!given->hypotheses.empty()) e.estimated = given->hypotheses.front().before;
  std::vector<Solution> solutions;
  std::vector<Explaining> others;
  // What the figures alone tell needs no other settings.
  std::optional<Verdict> own = judge_engine_pool(f);
  if (!own) own = judge_program(f);
  if (!own && !e.holds && modes.front() == Mode::training && (!f.others || f.others_deduced))
    own = oom_verdict::gradient_bucket(f);
  if (!own && !e.holds) {
    const ScoreGround ground = score_ground(f, scores);
    // In attention, but of no telling size, the inputs are solved for below.
    if (ground > ScoreGround::stack) own = judge_scores(f, scores, true);
    const bool inference = modes.front() == Mode::inference;
    if (!own && f.phase != RunPhase::load_weights)
      own = judge_profile_run(f, multiples(settings.vlm, settings.plan, device, f),
                              inference && given->hypotheses.empty());
  }
  if (own) {
    own->predicted_peak = given->peak;
    own->limit = limit(f);
    if (own->cause == Cause::attention_scores)
      own->why += " The settings as given do not make it: the whole run needs " + in_words(given->peak) + " by them.";
    const std::optional<Mode> read = own->mode;
    const std::string by = own->mode_by;
    set_mode(*own, f, mode, read);
    if (own->mode && own->mode_by == "the tensor's size and the memory") own->mode_by = by;
    own->explanation = std::move(e);
    return *std::move(own);
  }
  const bool told = oom_verdict::other_process(f, std::nullopt) || oom_verdict::growing_memory(f) ||
                    oom_verdict::fragmentation(f, std::nullopt);
  if (!e.holds && f.tensor && !told) {
    std::vector<OneChange> changes, solved;
    for (const Mode m : modes) {
      if (f.telling)
        for (const auto& [attention, flag] :
             {std::pair{settings.plan.attention, ""}, {AttentionKind::eager, "--attention eager"}}) {
          if (flag[0] != '\0' && settings.plan.attention == AttentionKind::eager) continue;
          Plan p = settings.plan;
          p.attention = attention;
          for (Solution& s :
               solve_unknown(settings.vlm, p, device, m == Mode::training, *f.tensor,
                             flag[0] != '\0' ? AllocationSite::score_matrix : f.site, flag[0] != '\0' ? 1 : 4)) {
            s.assuming = flag;
            if (!possible(s, settings.vlm, f)) continue;
            if (s.exact && flag[0] == '\0') solved.push_back(one_change::of(s, p, m));
            solutions.push_back(std::move(s));
          }
        }
      for (OneChange& c : one_changes(settings.plan, m)) changes.push_back(std::move(c));
    }
    // Inputs that are solved for have the size by construction: they explain only what a stack has named.
    if (stack_cause(f.site, RunPhase::unknown) != Cause::unknown)
      for (OneChange& c : solved) changes.push_back(std::move(c));
    if (!f.allocated)
      std::erase_if(changes, [&](const OneChange& c) { return !given->hypotheses.empty() || !makes_other_tensors(c); });
    others = explaining(settings.vlm, changes, device, f, estimator);
    sort_stably(solutions, [](const Solution& a, const Solution& b) { return a.exact && !b.exact; });
  }
  const Reading& read = others.empty() ? *given : others.front().reading;
  Verdict v = others.empty() && !e.holds ? judge_unexplained(f, read)
              : f.tensor                 ? judge_explained(f, read)
                                         : judge_unexplained(f, read);
  for (const Explaining& x : others) e.changes.push_back({x.change.flag, x.reading.hypotheses.front().before});
  if (!others.empty()) {
    v.changed = others.front().change.plan;
    v.confidence = std::min(v.confidence, oom_confidence::changed[static_cast<std::size_t>(ground(f))].share());
    v.why += " The settings as given do not explain it: by them " +
             (given->hypotheses.empty() ? "no tensor has that size"
                                        : oom_verdict::estimated_words(f, given->hypotheses.front())) +
             "; with " + e.changes.front().flag + " it would be " + in_words(e.changes.front().allocated) + ".";
  } else if (!e.holds) {
    v.solutions = std::move(solutions);
    if (v.cause != Cause::other_process && v.cause != Cause::fragmentation && !v.tensor)
      v.why += scores_as_well(f, scores);
  }
  v.hypotheses = read.hypotheses;
  v.live = read.live;
  v.predicted_peak = given->peak;
  v.limit = limit(f);
  set_mode(v, f, mode, e.holds || !others.empty() ? std::optional(read.mode) : std::nullopt);
  v.explanation = std::move(e);
  return v;
}

}  // namespace vlmest::diagnose
