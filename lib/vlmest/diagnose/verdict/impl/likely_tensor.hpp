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
#include <vlmest/diagnose/verdict/weight_shape.hpp>
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

/// "y" of "y = torch.cat([y, x], dim=1)", "F.linear(input, weight)" of "return F.linear(input, weight)"; empty where
/// the line is no source.
inline std::string result_of(std::string_view code) {
  if (code.starts_with("return ")) return std::string(code.substr(7, 80));
  const auto assigns = code.find(" = ");
  if (assigns == std::string_view::npos || assigns > 60) return {};
  const auto left = code.substr(0, assigns);
  const bool names = std::all_of(left.begin(), left.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == ',' || c == ' ' || c == '[' || c == ']' ||
           c == '"' || c == '\'';
  });
  return names ? std::string(left) : std::string();
}

/// The tensor by the innermost source line: its name there, with the size that was asked for.
inline void name_by_line(Verdict& v, const Failure& f) {
  // A call that loads a model has its name on the left, not the weight's; what a wrapper hands on has none.
  const bool of_tensors = v.cause == Cause::activations || v.cause == Cause::logits ||
                          v.cause == Cause::attention_scores || v.cause == Cause::vision_tiles ||
                          v.cause == Cause::optimizer_state || v.cause == Cause::gradients ||
                          v.cause == Cause::kv_cache || v.cause == Cause::fft_buffers;
  if (f.frames.empty() || !f.requested || !f.telling || !of_tensors ||
      f.frames.back().code.find("*args") != std::string::npos)
    return;
  const Frame& in = f.frames.back();
  // torch's loss takes the logarithm of the softmax of all rows first (aten/src/ATen/native/LossNLL.cpp).
  const bool loss = in.code.find("cross_entropy_loss(") != std::string::npos;
  const std::string result = loss ? "log-softmax of the logits" : result_of(in.code);
  // A module's call ends with a result, of which the tensors on the way are none.
  if (result.empty() || in.code.find("self.") < in.code.find('(')) return;
  v.tensor = DescribedTensor{.name = result,
                             .scope = {},
                             .role = Role::activation,
                             .shape = {},
                             .dtype = {},
                             .bytes = f.tensor ? f.tensor->value : f.requested->value};
  v.why += " What the line `" + in.code.substr(0, 120) + "` makes was asked for.";
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
    v.why += (f.shape_line > 0 ? " The shape that line " + std::to_string(f.shape_line) + " prints is of that size: "
                               : std::string(" The line of the failure makes ")) +
             to_string(f.made->shape) + " in " + f.made->dtype + " = " + in_words(f.made->bytes);
    // Segments are whole multiples of 2 MiB (kRoundLarge in c10/cuda/CUDACachingAllocator.h).
    if (f.requested && f.requested->low.value() > f.made->bytes.value() + (std::int64_t{2} << 20))
      v.why +=
          ", which an allocator that rounds up to parts of a power of two (roundup_power2_divisions) asks for as " +
          in_words(f.requested->value);
    v.why += ".";
    if (!weight.empty()) v.why += " That is the shape of the weight of " + weight + ".";
    return;
  }
  using namespace weight_shape;
  if (settings != nullptr && of_parameters(v.cause) && f.tensor && f.telling) {
    solve::Builds builds(settings->vlm, device, false);
    const bool built = builds.build(solve::short_prompt(settings->vlm));
    if (const auto all = built ? of_size(builds.graph(), *f.tensor) : std::vector<DescribedTensor>{}; all.size() == 1) {
      v.tensor = in_shape_of(all.front(), v.cause);
      v.why += " Of the model's weights the only ones of that size have the shape " + to_string(v.tensor->shape) +
               ", as " + v.tensor->scope + ".";
      return;
    }
  }
  // Without a model, where the text says how many words the vocabulary has.
  if (settings == nullptr && v.cause == Cause::logits && f.vocabulary > 0 && f.tensor && f.telling)
    for (const auto& [element, type] : {std::pair{4, "fp32"}, {2, "bf16"}}) {
      const std::int64_t row = f.vocabulary * element, rows = f.tensor->high.value() / row;
      if (rows < 1 || rows * row < f.tensor->low.value()) continue;
      v.tensor = DescribedTensor{.name = element == 4 ? "logits in fp32" : "logits",
                                 .scope = {},
                                 .role = Role::activation,
                                 .shape = {rows, f.vocabulary},
                                 .dtype = type,
                                 .bytes = Bytes(rows * row)};
      v.why += " At most " + score_matrix::number(rows) + " rows of the vocabulary of " +
               score_matrix::number(f.vocabulary) + " that the text tells have that size in " + type + ".";
      return;
    }
  if (settings != nullptr && v.cause == Cause::logits) {
    Plan all = settings->plan;
    all.logits = Logits::all;
    if (const auto rows = head_rows(f, settings->vlm, all, device)) {
      v.tensor = rows->tensor();
      v.why += " Logits of " + score_matrix::number(rows->positions) + " positions, " + to_string(v.tensor->shape) +
               " in " + v.tensor->dtype + ", are of that size.";
      return;
    }
  }
  if (v.cause != Cause::attention_scores || settings == nullptr) {
    likely_tensor::name_by_line(v, f);
    return;
  }
  const auto scores =
      score_matrices(f, attention_heads(settings->vlm, settings->plan, device), length_bounds(settings->plan));
  if (!scores.empty() && cut_off::scores_as_well.reached(scores.front().plausibility))
    v.tensor = described(scores.front());
  else
    likely_tensor::name_by_line(v, f);
}

}  // namespace vlmest::diagnose
