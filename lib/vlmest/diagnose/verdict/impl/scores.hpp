// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/stack/source_line.hpp>
#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/diagnose/verdict/scores.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace oom_scores {

inline std::string ground_words(const Failure& f, ScoreGround g) {
  switch (g) {
    case ScoreGround::stack: return ", which was asked for in attention";
    case ScoreGround::digits: return ", a figure in bytes that is a whole matrix of scores to the last digit";
    case ScoreGround::beyond:
      return f.one_buffer ? ", more than one buffer may have" : ", more than the whole device has";
    case ScoreGround::large: return ", of a size that only what grows with the square of a length reaches";
    case ScoreGround::none: break;
  }
  return {};
}

/// "with 16 heads N = 60,891 (2 bytes) or 43,056 (4 bytes); with 12 ..."
inline std::string lengths_words(const std::vector<ScoreMatrix>& all) {
  std::string r;
  std::vector<std::int64_t> seen;
  for (const ScoreMatrix& m : all) {
    if (std::find(seen.begin(), seen.end(), m.of.heads) != seen.end() || seen.size() == 4) continue;
    seen.push_back(m.of.heads);
    r += (r.empty() ? "with " : "; with ") + std::to_string(m.of.heads) + " heads N = ";
    bool first = true;
    for (const ScoreMatrix& o : all)
      if (o.of.heads == m.of.heads) {
        r += (first ? "" : " or ") + score_matrix::number(o.length) + " (" + std::to_string(o.element) + " bytes)";
        first = false;
      }
  }
  return r;
}

}  // namespace oom_scores

VLMEST_INLINE std::optional<Verdict> judge_scores(const Failure& f, const std::vector<ScoreMatrix>& all, bool known,
                                                  const LengthBounds& bounds) {
  const ScoreGround g = score_ground(f, all);
  if (g == ScoreGround::none) return std::nullopt;
  Verdict v{.cause = Cause::attention_scores,
            .confidence = oom_confidence::scores[static_cast<std::size_t>(g)].share()};
  const ScoreMatrix& m = all.front();
  const std::string why = oom_verdict::request_words(f) + oom_scores::ground_words(f, g);
  if (known || g == ScoreGround::digits)
    v.tensor = described(m);
  else
    v.tensor = DescribedTensor{.name = "attention scores", .role = Role::activation, .bytes = f.tensor->value};
  if (known) {
    v.why = "attention scores of " + (m.of.scope.empty() ? std::string("the model") : m.of.scope) + ", " +
            matrix_words(m) + "; " + why + ".";
    for (std::size_t i = 1; i < std::min<std::size_t>(all.size(), 3); ++i) v.why += " Or " + matrix_words(all[i]) + ".";
  } else {
    v.why = why +
            ". It is quadratic in something: heads x N x N, where N is the patches of all pictures and frames of " +
            "one call, or the tokens of a prompt: " + oom_scores::lengths_words(all) + ".";
    if (m.of.part != Part::language) {
      const auto side = [&](std::int64_t patch) {
        return score_matrix::number(static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(m.length)))) *
                                    patch);
      };
      v.why += " " + score_matrix::number(m.length) + " patches are together a picture of " + side(14) + "x" +
               side(14) + " pixels where a patch has 14, of " + side(16) + "x" + side(16) +
               " where it has 16. With --config the "
               "heads are known.";
    }
  }
  if (!known && bounds.pixels)
    v.why += " The pictures as given have " + score_matrix::number(*bounds.pixels / (14 * 14)) +
             " patches of 14 pixels, " + score_matrix::number(*bounds.pixels / (16 * 16)) + " of 16.";
  v.why += " " + fallback_words(f);
  return v;
}

VLMEST_INLINE std::optional<Verdict> judge_attention_call(const Failure& f) {
  if (f.site != AllocationSite::sdpa || f.requested) return std::nullopt;
  const bool trains = f.told && f.told->mode == Mode::training;
  if (trains && !attends_with_mask(f.frames)) return std::nullopt;
  return Verdict{.cause = Cause::attention_scores,
                 .confidence = confidence(Basis::attention_call),
                 .why = oom_verdict::request_words(f) + oom_verdict::site_words(f) + "." + attention_call_words(f)};
}

VLMEST_INLINE std::string attention_call_words(const Failure& f) {
  return " Large in there are the scores alone. " + fallback_words(f);
}

VLMEST_INLINE std::string scores_as_well(const Failure& f, const std::vector<ScoreMatrix>& all) {
  // A stack that names something else, or the line that makes the tensor, says more.
  const bool attends = f.site == AllocationSite::score_matrix || f.site == AllocationSite::sdpa ||
                       f.site == AllocationSite::attention_mask;
  if ((f.site != AllocationSite::unknown && !attends) || f.made) return {};
  // Small tensors have too many explanations for this one to be worth a sentence.
  if (all.empty() || !cut_off::scores_as_well.reached(all.front().plausibility) || !f.tensor ||
      !cut_off::scores_as_well_from.reached(f.tensor->high))
    return {};
  if (f.site == AllocationSite::attention_mask) return " It would be " + matrix_words(all.front()) + ".";
  return " As attention scores it would be " + matrix_words(all.front()) + ". " + fallback_words(f);
}

VLMEST_INLINE std::optional<Verdict> judge_profile_run(const Failure& f, const std::vector<Multiple>& all,
                                                       bool inference) {
  const bool told = stack_cause(f.site, f.phase) == Cause::profile_run;
  const bool by_size = inference && !all.empty() && all.front().plausibility >= 1 && all.front().pictures == 256;
  if (!told && !by_size) return std::nullopt;
  const Basis basis = told ? Basis::profile_run : Basis::default_sequences;
  Verdict v{.cause = Cause::profile_run, .confidence = confidence(basis), .why = oom_verdict::request_words(f)};
  v.why += told
               ? " while the engine ran the largest inputs that its settings admit, to measure what is left for its KV "
                 "cache."
               : "; an engine's profile run takes the largest picture for each of 256 sequences, vLLM's default of "
                 "max_num_seqs, and has a tensor of that size.";
  if (!all.empty()) {
    v.tensor = all.front().tensor;
    v.tensor->bytes = Bytes(all.front().tensor.bytes.value() * all.front().pictures / all.front().ranks);
    if (v.tensor->shape.rank() > 0 && all.front().pictures > 1) v.tensor->shape[0] *= all.front().pictures;
    v.why += " The size is that of " + multiple_words(all.front()) + ".";
    if (all.size() > 1) v.why += " So it is of " + multiple_words(all[1]) + ".";
  }
  v.why +=
      " Fewer sequences (max_num_seqs), fewer or smaller pictures (limit_mm_per_prompt, max_pixels) make it smaller.";
  v.mode = Mode::inference;
  v.mode_by = told ? "the profile run in the stack" : "the tensor's size";
  return v;
}

VLMEST_INLINE std::optional<Verdict> judge_engine_pool(const Failure& f) {
  if (!f.engine_pool) return std::nullopt;
  // vLLM: csrc/cumem_allocator.cpp, create_and_map(), as LLM.wake_up() calls it (device_allocator/cumem.py). SGLang and
  // slime: torch_memory_saver's csrc/core.cpp, resume().
  return Verdict{.cause = Cause::engine_budget,
                 .confidence = confidence(Basis::engine_pool),
                 .why =
                     "an engine that sleeps maps its weights and its KV cache again when it wakes up (vLLM's "
                     "CuMemAllocator, SGLang's torch_memory_saver), and the device has less free than they took: what "
                     "trains beside it, or its "
                     "cache, holds it. Lower gpu_memory_utilization, empty torch's cache before wake_up(), or move "
                     "the trainer's states to the host meanwhile."};
}

}  // namespace vlmest::diagnose
