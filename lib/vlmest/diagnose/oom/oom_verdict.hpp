// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <vlmest/diagnose/oom/oom_rules.hpp>
#include <vlmest/diagnose/oom/stack_cause.hpp>
#include <vlmest/diagnose/text/words.hpp>
#include <vlmest/diagnose/verdict.hpp>

namespace vlmest::diagnose {

/// From the figures and the stack alone, where no model is given.
inline Verdict judge(const Failure& f) {
  using namespace oom_verdict;
  const auto finish = [&](Verdict v) {
    v.live = f.live;
    v.limit = limit(f);
    return v;
  };
  if (auto v = other_process(f, std::nullopt)) return finish(*v);
  if (auto v = growing_memory(f)) return finish(*v);
  if (auto v = fragmentation(f, std::nullopt)) return finish(*v);
  Verdict v = finish({.cause = stack_cause(f.site, f.phase)});
  // With a snapshot it is known what fills the memory.
  if (!f.live.empty() && f.requested) {
    Hypothesis h{.cause = v.cause == Cause::unknown ? Cause::activations : v.cause};
    h.tensor.bytes = f.requested->value;
    v.cause = blamed(h, f.live, f.allocated->value);
  }
  v.confidence = v.cause == Cause::unknown ? 0 : f.site != AllocationSite::unknown && !f.outside ? 0.7 : 0.4;
  v.why = request_words(f);
  if (f.site != AllocationSite::unknown) v.why += "; the stack was making: " + std::string(name(f.site));
  if (f.phase != RunPhase::unknown) v.why += ", during " + std::string(name(f.phase));
  if (f.frames.empty() && f.live.empty()) v.why += "; there is no traceback";
  if (!f.live.empty()) v.why += ". Alive were " + live_words(f.live);
  v.why += f.tensor && f.telling ? ". With --config the tensor can be named." : ".";
  return v;
}

/// With the run's settings read in: `r` is the reading that agrees best; `asked` the peak of the settings as given.
inline Verdict judge(const Failure& f, const Reading& r, Bytes asked) {
  using namespace oom_verdict;
  const auto finish = [&](Verdict v) {
    v.hypotheses = r.hypotheses;
    v.live = r.live;
    v.predicted_peak = asked;
    v.limit = limit(f);
    if (!r.hypotheses.empty() && !v.tensor) v.tensor = r.hypotheses.front().tensor;
    return v;
  };
  if (auto v = other_process(f, r.peak)) return finish(*v);
  // Growth that the settings' own peak holds is no leak: a cache fills, a first step makes states.
  if (f.allocated && f.allocated->low > r.peak)
    if (auto v = growing_memory(f)) return finish(*v);
  if (r.hypotheses.empty()) {
    if (auto v = fragmentation(f, std::nullopt)) return finish(*v);
    Verdict v = judge(f);
    v.why = request_words(f) +
            (f.tensor ? "; no tensor of these settings has that size." : "; its size is not known.") +
            " The whole run needs " + in_words(r.peak) + ".";
    v.confidence /= 2;
    return finish(v);
  }
  const Hypothesis& h = r.hypotheses.front();
  if (auto v = not_described(f, r)) return finish(*v);
  if (const auto more = unexplained(f, r))
    return finish({.cause = Cause::leak,
                   .confidence = 0.7,
                   .why = "these settings explain at most " + in_words(std::max(r.peak, h.before)) +
                          " at their peak, but " + in_words(f.allocated->value) +
                          " were allocated: " + in_words(*more) +
                          " more are kept alive, by earlier steps or by something else in the process. Asked for was " +
                          tensor_words(h) + "."});
  if (auto v = fragmentation(f, r.peak)) return finish(*v);
  Verdict v{.cause = blamed(h, r.live, limit(f)), .confidence = std::min(0.99, h.confidence)};
  // Hypotheses of one kind agree on the verdict, whichever of them it was.
  for (std::size_t i = 1; i < r.hypotheses.size(); ++i)
    if (r.hypotheses[i].cause == h.cause) v.confidence = std::min(0.99, v.confidence + r.hypotheses[i].confidence);
  v.why = "asked for was " + tensor_words(h) + "; " + request_words(f) + " (by the estimate " + in_words(h.before) +
          (r.live.empty() ? "" : ": " + live_words(r.live)) + "). The whole run needs " + in_words(r.peak) + ".";
  return finish(v);
}

/// Reads a failure with the settings given and, where nothing of that size agrees, with the ones that people run
/// without knowing: attention written out, activations not checkpointed, logits of every position, fp32.
inline Verdict judge(const Failure& f, const Settings& settings, const Device& device, std::optional<Mode> mode,
                     Estimator& estimator) {
  std::vector<Mode> modes;
  const auto seen = [&](RunPhase p) { return f.phase == p; };
  if (mode)
    modes = {*mode};
  else if (seen(RunPhase::backward) || seen(RunPhase::optimizer_step) || seen(RunPhase::loss))
    modes = {Mode::training};
  else if (seen(RunPhase::decode) || seen(RunPhase::server_profile))
    modes = {Mode::inference};
  else
    modes = {Mode::inference, Mode::training};
  const double enough = 0.5 * agrees_at_most(f.phase) * agrees_at_most(f.site);
  std::optional<Reading> best;
  // Of the settings as given, and of others only where nothing of the size is found, or what is found agrees.
  const auto consider = [&](const Plan& plan, const std::string& assuming) {
    for (const Mode m : modes) {
      std::optional<Reading> r;
      try {
        r = read_failure(settings.vlm, plan, device, m, f, estimator, assuming);
      } catch (const Error&) {
        if (assuming.empty() && m == modes.back() && !best) throw;
        continue;
      }
      // Where nothing is found the settings as given are read, not the last of the others.
      const bool wanted =
          !best || (assuming.empty() ? r->agreement() > best->agreement()
                                     : r->agreement() > enough || (best->hypotheses.empty() && !r->hypotheses.empty()));
      if (wanted) best = std::move(r);
    }
    return best->agreement() > enough;
  };
  const Plan& p = settings.plan;
  const bool found = consider(p, "");
  const Bytes asked = best->peak;
  if (!found && f.telling) {
    std::vector<std::pair<Plan, std::string>> others;
    const auto add = [&](bool possible, auto change, const char* words) {
      if (!possible) return;
      Plan q = p;
      change(q);
      others.emplace_back(q, words);
    };
    add(
        p.attention != AttentionKind::eager, [](Plan& q) { q.attention = AttentionKind::eager; },
        "attention written out, as eager attention or SDPA's math path do");
    add(
        p.checkpointing != Checkpointing::off, [](Plan& q) { q.checkpointing = Checkpointing::off; },
        "checkpointing not in force");
    add(
        p.logits == Logits::last, [](Plan& q) { q.logits = Logits::all; }, "logits of every position");
    add(
        p.dtype != DType::fp32, [](Plan& q) { q.dtype = DType::fp32; }, "everything in fp32");
    for (const auto& [plan, words] : others)
      if (consider(plan, words)) break;
  }
  Verdict v = judge(f, *best, asked);
  if (f.tensor && f.telling && best->agreement() < enough && v.cause != Cause::other_process &&
      v.cause != Cause::leak) {
    for (const Mode m : modes) {
      const auto more = solve_unknown(settings.vlm, p, device, m == Mode::training, *f.tensor, f.site);
      v.solutions.insert(v.solutions.end(), more.begin(), more.end());
    }
    std::stable_sort(v.solutions.begin(), v.solutions.end(),
                     [](const Solution& a, const Solution& b) { return a.exact && !b.exact; });
  }
  return v;
}

}  // namespace vlmest::diagnose
