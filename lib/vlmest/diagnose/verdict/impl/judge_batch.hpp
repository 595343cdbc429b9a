// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/run/outcome.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_batch.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<Verdict> judge_batch(const Failure& f, const Settings& settings, const Device& device,
                                                 const std::vector<Solution>& solutions, Estimator& estimator) {
  if (!f.allocated) return std::nullopt;
  const auto peak_of = [&](std::int64_t batch) {
    Settings s = settings;
    s.plan.batch = batch;
    return evaluate(s, device, Mode::training, estimator).peak;
  };
  const Bytes one = peak_of(1), two = peak_of(2);
  if (two <= one || f.allocated->value <= one) return std::nullopt;
  const double each = static_cast<double>((two - one).value());
  const double batch = 1 + static_cast<double>((f.allocated->value - one).value()) / each;
  if (!(batch >= 1.5 && batch <= 4096)) return std::nullopt;
  Verdict v{.cause = Cause::activations, .confidence = confidence(Basis::untold_batch)};
  const Solution* best = nullptr;
  for (const Solution& s : solutions) {
    const double off = std::abs(static_cast<double>(s.value) - batch);
    if (s.unknown != Unknown::batch || !s.exact || !s.assuming.empty() || off > 0.25 * batch) continue;
    if (best == nullptr || off < std::abs(static_cast<double>(best->value) - batch)) best = &s;
  }
  v.why = oom_verdict::request_words(f) + ". One sequence takes " + in_words(one) + " at the peak and each more " +
          in_words(two - one) + ": with a batch of about " + std::to_string(std::llround(batch)) +
          ", which nothing in the text tells, as much would be allocated as was.";
  if (best != nullptr) {
    v.cause = best->cause;
    v.tensor = best->tensor;
    v.why += " With " + std::to_string(best->value) + " a tensor has the size asked for: " + best->tensor.name +
             (best->tensor.scope.empty() ? "" : " of " + best->tensor.scope) + ", " + to_string(best->tensor.shape) +
             " in " + best->tensor.dtype + ".";
  }
  v.why += " --batch says how many there were.";
  return v;
}

}  // namespace vlmest::diagnose
