// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace oom_verdict {

VLMEST_INLINE std::string request_words(const Failure& f) {
  std::string r = f.requested ? "an allocation of " + in_words(f.requested->value) : "an allocation";
  r += f.outside ? " failed that CUDA or one of its libraries made, outside of torch's allocator: the device was full, "
                   "with tensors or with what torch keeps in its cache"
                 : " failed";
  if (f.allocated) r += " over " + in_words(f.allocated->value) + " allocated";
  if (const auto most = limit(f)) r += ", where " + in_words(*most) + " may be used";
  return r;
}

VLMEST_INLINE std::optional<Verdict> other_process(const Failure& f, std::optional<Bytes> peak) {
  if (!f.others || !f.requested || !f.total || !f.free) return std::nullopt;
  if (f.allowed && f.allocated && f.allocated->value + f.requested->value > f.allowed->value) return std::nullopt;
  const Bytes others = f.others->value;
  // Of what is deduced only the part beyond any context is known to be another's.
  const Bytes known = f.others_deduced ? f.others->low : others;
  if (others + f.free->value < f.requested->value || !cut_off::others.reached(known, f.total->value))
    return std::nullopt;
  // A request fails where less is free than it asks for. If more is free when the message is written, somebody has let
  // go of it meanwhile; a limit of this process's own, or pieces, are other reasons.
  const bool moved = f.free->value >= f.requested->value;
  if (moved && (f.allowed || !cut_off::others_that_moved.reached(known, f.total->value))) return std::nullopt;
  const Bytes own = f.total->value - std::min(others, f.total->value);
  const Bytes context = f.non_torch ? f.non_torch->value : Bytes{};
  if (peak && *peak + context > f.total->value) return std::nullopt;  // it would not fit alone either
  if (peak && *peak + context <= own) return std::nullopt;            // it fits beside them: something else grew
  return Verdict{.cause = Cause::other_process,
                 .confidence = peak                                ? confidence(Basis::fits_alone)
                               : others > own && !f.others_deduced ? confidence(Basis::others_hold_more)
                               : others > own                      ? confidence(Basis::deduced_to_hold_more)
                                                                   : confidence(Basis::others_hold_less),
                 .why = (f.others_deduced ? "what is not this process's tensors holds " : "other processes hold ") +
                        in_words(others) + " of the " + in_words(f.total->value) + ", and " + in_words(f.free->value) +
                        " are free; " + request_words(f) +
                        (peak ? ". Alone on the device the run fits: its peak is " + in_words(*peak) : "") + "."};
}

VLMEST_INLINE std::optional<Verdict> gradient_bucket(const Failure& f) {
  const bool open = f.site == AllocationSite::unknown || f.site == AllocationSite::gradient;
  const bool trains = !f.told || f.told->mode == Mode::training;
  const bool when =
      f.phase == RunPhase::unknown || f.phase == RunPhase::backward || f.phase == RunPhase::optimizer_step;
  if (!open || !trains || !when || !f.tensor || !f.telling || f.made || f.foreign ||
      f.tensor->high.value() - f.tensor->low.value() > (std::int64_t{4} << 20))
    return std::nullopt;
  for (const std::int64_t elements : {500'000'000, 200'000'000})
    for (const std::int64_t width : {2, 4}) {
      const Bytes bytes(elements * width);
      if (!f.tensor->holds(bytes)) continue;
      return Verdict{.cause = Cause::gradients,
                     .confidence = confidence(Basis::bucket),
                     .why = request_words(f) + "; that is the size of a bucket of " + std::to_string(elements) +
                            " elements of " + std::to_string(width) +
                            " bytes, in which DeepSpeed adds up gradients (reduce_bucket_size): smaller buckets take "
                            "less.",
                     .tensor = DescribedTensor{.name = "bucket of gradients",
                                               .scope = {},
                                               .role = Role::gradient,
                                               .shape = {elements},
                                               .dtype = width == 2 ? "bf16" : "fp32",
                                               .bytes = bytes}};
    }
  return std::nullopt;
}

VLMEST_INLINE std::optional<Verdict> fragmentation(const Failure& f, std::optional<Bytes> peak) {
  // A table does not say what was asked for. Half of what is reserved beside tensors is more than rounding leaves.
  if (!f.requested && f.split && f.allocated && f.unallocated &&
      cut_off::pieces_beside_another_reason.exceeded(f.split->value, f.allocated->value + f.unallocated->value))
    return Verdict{.cause = Cause::fragmentation,
                   .confidence = confidence(Basis::pieces_of_a_table),
                   .why = in_words(f.split->value) + " of the " + in_words(f.allocated->value + f.unallocated->value) +
                          " that are reserved are free pieces of segments that tensors are in: they serve no larger "
                          "request and cannot be returned to the device."};
  const auto pieces = in_pieces(f);
  if (!pieces) return std::nullopt;
  const auto most = limit(f);
  if (peak && most && *peak > *most) return std::nullopt;
  const bool other_reason = stack_cause(f.site, RunPhase::unknown) != Cause::unknown;
  const auto share = share_in_pieces(f);
  const cut_off::Part& least = other_reason ? cut_off::pieces_beside_another_reason : cut_off::pieces;
  if (!peak && !(share && least.reached(*pieces, f.allocated->value + *pieces))) return std::nullopt;
  std::string why = in_words(*pieces) + " are reserved and not in use, more than the " + in_words(f.requested->value) +
                    " asked for, but in pieces";
  if (f.largest_free) why += ": the largest is " + in_words(*f.largest_free);
  if (f.allocated) why += ". Tensors take " + in_words(f.allocated->value);
  if (most) why += " of " + in_words(*most);
  if (share) why += ", the pieces " + std::to_string(std::lround(*share * 100)) + " % of what is reserved";
  if (peak) why += ", and the run's own peak would be " + in_words(*peak);
  return Verdict{.cause = Cause::fragmentation,
                 .confidence = peak             ? confidence(Basis::pieces_of_a_run_that_fits)
                               : f.largest_free ? confidence(Basis::largest_piece_known)
                                                : confidence(Basis::pieces),
                 .why = why + "."};
}

VLMEST_INLINE std::optional<Verdict> growing_memory(const Failure& f) {
  if (!f.growth || !f.allocated) return std::nullopt;
  const SteadyGrowth& g = *f.growth;
  // A recording that holds the last steps alone shows a part of what grew; at the same point of a step nothing should.
  if (!cut_off::growth.reached(g.last - g.first, f.allocated->value)) return std::nullopt;
  return Verdict{.cause = Cause::leak,
                 .confidence = confidence(Basis::steady_growth),
                 .why = "memory in use at the same point of " + std::to_string(g.steps) + " steps grew from " +
                        in_words(g.first) + " to " + in_words(g.last) + ", " +
                        in_words(Bytes(static_cast<std::int64_t>(g.bytes_per_step))) + " a step" +
                        (g.where.empty() ? "" : "; what piles up is made in " + g.where) +
                        (f.requested ? ", until " + request_words(f) : "") + "."};
}

VLMEST_INLINE std::optional<Bytes> unexplained(const Failure& f, const Reading& r) {
  if (!f.allocated || r.hypotheses.empty()) return std::nullopt;
  // The settings' own peak is the most that they explain, whenever in the step it was.
  const Bytes explained = std::max(r.peak, r.hypotheses.front().before);
  if (f.allocated->low <= explained) return std::nullopt;
  const Bytes more = f.allocated->low - explained;
  const bool much = cut_off::kept_at_least.reached(more) && cut_off::kept.exceeded(more, explained);
  return much ? std::optional(more) : std::nullopt;
}

VLMEST_INLINE Cause blamed(const Hypothesis& h, const std::vector<MemoryPart>& live, std::optional<Bytes> limit) {
  const bool temporary = h.cause == Cause::activations || h.cause == Cause::vision_tiles;
  if (!temporary || !limit || live.empty() || cut_off::last_drop.exceeded(h.tensor.bytes, *limit)) return h.cause;
  Bytes all{}, own{};
  for (const MemoryPart& p : live) {
    all += p.bytes;
    if (p.cause == h.cause) own += p.bytes;
  }
  if (cut_off::last_drop_of_its_kind.exceeded(own, all)) return h.cause;
  for (const MemoryPart& p : live) {
    if (p.cause == Cause::weights && !cut_off::weights_alone.reached(p.bytes, *limit)) continue;
    return p.bytes > h.tensor.bytes ? p.cause : h.cause;
  }
  return h.cause;
}

VLMEST_INLINE std::optional<Verdict> not_described(const Failure& f, const Reading& r) {
  const Cause told = stack_cause(f.site, RunPhase::unknown);
  const bool kind = told == Cause::fft_buffers || told == Cause::kv_cache || told == Cause::logits ||
                    told == Cause::optimizer_state || told == Cause::weights || f.site == AllocationSite::score_matrix;
  if (!kind || !f.requested || !f.telling) return std::nullopt;
  for (const Hypothesis& h : r.hypotheses)
    if (h.cause == told) return std::nullopt;
  Verdict v{.cause = told, .confidence = confidence(Basis::by_site)};
  v.tensor = DescribedTensor{.name = std::string(name(f.site)), .bytes = f.requested->value};
  v.why = "the stack was making: " + std::string(name(f.site)) + ", which these settings do not have in this size; " +
          request_words(f) + ". Without it the whole run needs " + in_words(r.peak) + ".";
  return v;
}

VLMEST_INLINE std::optional<Cause> of_states(const Failure& f, const Reading& r) {
  const auto most = limit(f);
  if (r.mode != Mode::training || r.hypotheses.empty() || (most && r.peak <= *most)) return std::nullopt;
  double weights = 0, gradients = 0, states = 0;
  for (const Hypothesis& h : r.hypotheses) {
    if (h.cause != Cause::weights && h.cause != Cause::gradients && h.cause != Cause::optimizer_state)
      return std::nullopt;
    (h.cause == Cause::weights ? weights : h.cause == Cause::gradients ? gradients : states) += h.confidence;
  }
  if (states >= std::max(weights, gradients)) return Cause::optimizer_state;
  return gradients >= weights ? Cause::gradients : Cause::weights;
}

VLMEST_INLINE std::string tensor_words(const Hypothesis& h) {
  std::string r = h.tensor.name + " of " + (h.tensor.scope.empty() ? "the model" : h.tensor.scope) + ", " +
                  to_string(h.tensor.shape) + " in " + h.tensor.dtype + " = " + in_words(h.tensor.bytes);
  if (!h.phase.empty()) r += ", in " + h.phase;
  if (h.moment == Moment::first_step && h.phase != "load") r += " of the first step";
  if (!h.assuming.empty()) r += " (with " + h.assuming + ")";
  return r;
}

VLMEST_INLINE std::string size_of_words(const std::vector<Hypothesis>& all) {
  std::string r;
  std::vector<Cause> seen;
  for (const Hypothesis& h : all) {
    if (std::find(seen.begin(), seen.end(), h.cause) != seen.end()) continue;
    seen.push_back(h.cause);
    r += (r.empty() ? "" : ", ") + tensor_words(h);
  }
  return r;
}

}  // namespace oom_verdict
}  // namespace vlmest::diagnose
