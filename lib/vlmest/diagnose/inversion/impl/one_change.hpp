// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/inversion/explained.hpp>
#include <vlmest/diagnose/inversion/one_change.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace one_change {

VLMEST_INLINE OneChange of(const Solution& s, const Plan& plan, Mode mode) {
  OneChange c{{}, plan, mode};
  const std::string value = number(s.value);
  switch (s.unknown) {
    case Unknown::text_tokens: c.flag = "--text " + value; break;
    case Unknown::batch: c.flag = "--batch " + value; break;
    case Unknown::images: c.flag = "--images " + value; break;
    case Unknown::image_side: c.flag = "--image-size " + value + "x" + number(s.width); break;
  }
  // Pictures keep their shape: with() asks for the sides' ratio alone.
  c.plan = solve::with(plan, s.unknown, s.value, {s.value, s.width});
  return c;
}

}  // namespace one_change

VLMEST_INLINE std::vector<OneChange> one_changes(const Plan& p, Mode mode) {
  one_change::List l(p, mode);
  const auto attention = [&](AttentionKind k, const char* flag) {
    l.add(p.attention != k, flag, [k](Plan& q) { q.attention = k; });
  };
  const auto type = [&](DType t, const char* flag) {
    l.add(p.dtype != t || p.amp, flag, [t](Plan& q) {
      q.dtype = t;
      q.amp = false;
    });
  };
  attention(AttentionKind::eager, "--attention eager");
  if (mode == Mode::training) {
    const auto checkpointing = [&](Checkpointing c, const char* flag) {
      l.add(p.checkpointing != c, flag, [c](Plan& q) {
        q.checkpointing = c;
        q.checkpointed = {};
      });
    };
    checkpointing(Checkpointing::off, "--checkpointing none");
    checkpointing(Checkpointing::full, "--checkpointing full");
    checkpointing(Checkpointing::selective, "--checkpointing selective");
    l.add(p.lora.rank > 0, "no --lora", [](Plan& q) { q.lora = {}; });
    l.add(p.lora.rank == 0, "--lora 16", [](Plan& q) { q.lora.rank = 16; });
    const bool all = p.trainable.vision && p.trainable.projector && p.trainable.language;
    l.add(!all, "no --freeze", [](Plan& q) { q.trainable = {}; });
    l.add(p.trainable.vision, "--freeze vision", [](Plan& q) { q.trainable.vision = false; });
    for (const auto& [o, flag] : {std::pair{Optimizer::sgd, "--optimizer sgd"},
                                  {Optimizer::adamw, "--optimizer adamw"},
                                  {Optimizer::adamw_8bit, "--optimizer adamw-8bit"}})
      l.add(p.optimizer != o, flag, [o_ = o](Plan& q) { q.optimizer = o_; });
    l.add(p.gradient_accumulation == 1, "--gradient-accumulation 2", [](Plan& q) { q.gradient_accumulation = 2; });
    l.add(p.gradient_accumulation > 1, "--gradient-accumulation 1", [](Plan& q) { q.gradient_accumulation = 1; });
    l.add(!p.amp && p.dtype != DType::fp32, "--amp", [](Plan& q) {
      q.dtype = DType::fp32;
      q.amp = true;
    });
    l.add(p.loss != Loss::unfused, "--loss unfused", [](Plan& q) { q.loss = Loss::unfused; });
    l.add(p.loss != Loss::fused, "--loss fused", [](Plan& q) { q.loss = Loss::fused; });
  } else {
    l.add(p.logits == Logits::last, "--logits all", [](Plan& q) { q.logits = Logits::all; });
    l.add(p.logits == Logits::all, "--logits last", [](Plan& q) { q.logits = Logits::last; });
    l.add(p.weights.has_value(), "no --weights", [](Plan& q) { q.weights.reset(); });
    for (const auto& [t, flag] : {std::pair{DType::nf4, "--weights nf4"}, {DType::int8, "--weights int8"}})
      l.add(p.weights != t, flag, [t_ = t](Plan& q) { q.weights = t_; });
  }
  attention(AttentionKind::sdpa, "--attention sdpa");
  attention(AttentionKind::flash, "--attention flash");
  type(DType::bf16, "--dtype bf16");
  type(DType::fp32, "--dtype fp32");
  for (const std::int64_t b : {p.batch / 2, p.batch * 2})
    l.add(b > 0 && b < solve::most_tokens, "--batch " + one_change::number(b), [b](Plan& q) { q.batch = b; });
  l.add(p.batch > 3, "--batch 1", [](Plan& q) { q.batch = 1; });
  for (const std::int64_t t : {p.text / 2, p.text * 2})
    l.add(!p.seq && t > 0 && t < solve::most_tokens, "--text " + one_change::number(t), [t](Plan& q) { q.text = t; });
  for (const std::int64_t i : {p.images / 2, p.images - 1, p.images + 1, p.images * 2})
    l.add(!p.seq && i > 0 && i != p.images && i <= solve::most_images, "--images " + one_change::number(i),
          [i](Plan& q) { q.images = i; });
  return std::move(l.changes);
}

VLMEST_INLINE bool explains(const Failure& f, const Reading& r) {
  const auto most = limit(f);
  // Without a size there is only the whole run to compare.
  if (!f.tensor) return most && r.peak > *most;
  if (r.hypotheses.empty()) return false;
  switch (nearness(f.allocated, r.hypotheses.front().before)) {
    case Nearness::within: return true;
    case Nearness::unknown: return !most || r.peak > *most;
    default: return false;
  }
}

VLMEST_INLINE std::vector<Explaining> explaining(const Vlm& vlm, const std::vector<OneChange>& changes,
                                                 const Device& device, const Failure& f, Estimator& estimator) {
  std::vector<Explaining> r;
  for (const OneChange& c : changes) {
    const bool known = std::any_of(
        r.begin(), r.end(), [&](const Explaining& e) { return e.change.flag == c.flag && e.change.mode == c.mode; });
    if (known) continue;
    try {
      Reading reading = read_failure(vlm, c.plan, device, c.mode, f, estimator, c.flag);
      if (reading.hypotheses.empty() || !explains(f, reading)) continue;
      r.push_back({c, std::move(reading)});
    } catch (const Error&) {
      continue;  // the model refuses it
    }
  }
  sort_stably(r,
              [](const Explaining& a, const Explaining& b) { return a.reading.agreement() > b.reading.agreement(); });
  return r;
}

}  // namespace vlmest::diagnose
