// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/inversion/head_rows.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace head {

/// The widest logits of a short prompt: their module and the vocabulary.
inline std::optional<std::pair<std::string, std::int64_t>> of(const Vlm& vlm, const Device& device) {
  solve::Builds builds(vlm, device, false);
  if (!builds.build(solve::short_prompt(vlm))) return std::nullopt;
  std::optional<std::pair<std::string, std::int64_t>> r;
  for (const auto& [key, sized] : builds.kinds()) {
    if (sized.cause != Cause::logits) continue;
    const Tensor& t = builds.graph().tensor(sized.tensor);
    if (t.shape.rank() == 0 || (r && t.shape[-1] <= r->second)) continue;
    r = std::pair(path(builds.graph(), t.scope), t.shape[-1]);
  }
  return r;
}

}  // namespace head

VLMEST_INLINE DescribedTensor HeadRows::tensor() const {
  return {.name = element == 4 ? "logits in fp32" : "logits",
          .scope = scope,
          .role = Role::activation,
          .shape = {batch, positions, vocabulary},
          .dtype = element == 4 ? "fp32" : "bf16",
          .bytes = Bytes(batch * positions * vocabulary * element)};
}

VLMEST_INLINE std::optional<HeadRows> head_rows(const Failure& f, const Vlm& vlm, const Plan& plan,
                                                const Device& device) {
  const bool all = plan.logits == Logits::all;
  if (!f.tensor || !f.telling || (!all && !f.early_torch)) return std::nullopt;
  const auto of = head::of(vlm, device);
  if (!of) return std::nullopt;
  std::optional<HeadRows> best;
  for (const int element : {4, 2}) {
    const std::int64_t batch = std::max<std::int64_t>(plan.batch, 1), row = batch * of->second * element;
    const std::int64_t most = f.tensor->high.value() / row;
    if (most * row < f.tensor->low.value() || most < score_matrix::least_positions) continue;
    if (plan.seq && most > *plan.seq) continue;
    if (most > vlm.positions.value_or(score_matrix::most_positions)) continue;
    // Both types have the positions; the copy in fp32 is made last and is twice as large.
    const double p = (all ? 1 : 0.6) * (element == 4 ? 1 : 0.6);
    if (!best || p > best->plausibility)
      best = HeadRows{.scope = of->first,
                      .batch = batch,
                      .positions = most,
                      .vocabulary = of->second,
                      .element = element,
                      .plausibility = p};
  }
  return best;
}

}  // namespace vlmest::diagnose
