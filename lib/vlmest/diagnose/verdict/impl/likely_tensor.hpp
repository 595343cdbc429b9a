// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/attention_heads.hpp>
#include <vlmest/diagnose/inversion/head_rows.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/diagnose/verdict/likely_tensor.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace likely_tensor {

/// The module of the only weight of a shape; empty where there is none, or more than one.
inline std::string weight_of_shape(const Vlm& vlm, const Shape& shape, const Device& device) {
  solve::Builds builds(vlm, device, false);
  if (!builds.build(solve::short_prompt(vlm))) return {};
  std::string module;
  for (const Tensor& t : builds.graph().tensors) {
    if (t.role != Role::weight || t.alias_of != none || t.shape != shape) continue;
    if (!module.empty()) return {};
    module = path(builds.graph(), t.scope);
  }
  return module;
}

}  // namespace likely_tensor

VLMEST_INLINE std::optional<Verdict> judge_by_size(const Failure& f, const Settings& settings, const Device& device,
                                                   bool own_kernels) {
  const bool open = f.site == AllocationSite::unknown && !f.made && !f.outside && !f.foreign &&
                    (f.phase == RunPhase::unknown || f.phase == RunPhase::forward || f.phase == RunPhase::decode);
  if (!open || !f.tensor || !f.telling || !cut_off::by_size_alone.reached(f.tensor->value)) return std::nullopt;
  const auto rows = head_rows(f, settings.vlm, settings.plan, device);
  std::vector<ScoreMatrix> scores;
  if (!own_kernels)
    scores = score_matrices(f, attention_heads(settings.vlm, settings.plan, device), length_bounds(settings.plan));
  const double as_scores = scores.empty() ? 0 : scores.front().plausibility;
  if (rows && rows->plausibility >= as_scores)
    return Verdict{.cause = Cause::logits,
                   .confidence = confidence(Basis::logits_by_size),
                   .why = "it is of the size of the logits of " + score_matrix::number(rows->positions) +
                          " positions, each a row of the whole vocabulary: " + to_string(rows->tensor().shape) +
                          " in " + rows->tensor().dtype + " = " + in_words(rows->tensor().bytes) +
                          (settings.plan.logits == Logits::all
                               ? "."
                               : ". Transformers of the time of this torch computes those of every position of a "
                                 "prompt, and copies them to fp32."),
                   .tensor = rows->tensor()};
  if (!cut_off::scores_as_well.reached(as_scores)) return std::nullopt;
  return Verdict{.cause = Cause::attention_scores,
                 .confidence = confidence(Basis::scores_by_size),
                 .why = "no other tensor of this model has such a size.",
                 .tensor = described(scores.front())};
}

VLMEST_INLINE void name_tensor(Verdict& v, const Failure& f, const Settings* settings, const Device& device) {
  if (v.tensor) return;
  if (f.made) {
    v.tensor = *f.made;
    const std::string weight =
        settings == nullptr ? "" : likely_tensor::weight_of_shape(settings->vlm, f.made->shape, device);
    if (!weight.empty()) v.tensor->scope = weight;
    v.why += " The line of the failure makes " + to_string(f.made->shape) + " in " + f.made->dtype + " = " +
             in_words(f.made->bytes);
    // Segments are whole multiples of 2 MiB (kRoundLarge in c10/cuda/CUDACachingAllocator.h).
    if (f.requested && f.requested->low.value() > f.made->bytes.value() + (std::int64_t{2} << 20))
      v.why +=
          ", which an allocator that rounds up to parts of a power of two (roundup_power2_divisions) asks for as " +
          in_words(f.requested->value);
    v.why += ".";
    if (!weight.empty()) v.why += " That is the shape of the weight of " + weight + ".";
    return;
  }
  if (v.cause != Cause::attention_scores || settings == nullptr) return;
  const auto scores =
      score_matrices(f, attention_heads(settings->vlm, settings->plan, device), length_bounds(settings->plan));
  if (!scores.empty() && cut_off::scores_as_well.reached(scores.front().plausibility))
    v.tensor = described(scores.front());
}

}  // namespace vlmest::diagnose
