// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/reading.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// What the figures of a failed allocation prove, each rule for itself; oom_verdict.hpp asks them in turn.
namespace vlmest::diagnose {

namespace oom_verdict {

std::string request_words(const Failure& f);

/// Other processes hold what this one needs: without them the request would have been served (and the whole run, where
/// it was estimated), and it is the device that is full, not this process's own limit.
std::optional<Verdict> other_process(const Failure& f, std::optional<Bytes> peak);

/// What is reserved and in no tensor, where it is as much as was asked for and yet did not serve it. Before a request
/// fails, the allocator returns every cached segment that no tensor is in (release_cached_blocks() in
/// c10/cuda/CUDACachingAllocator.cpp): what remains are free pieces of segments that tensors are in.
inline std::optional<Bytes> in_pieces(const Failure& f) {
  if (!f.requested || !f.unallocated || f.outside || f.unallocated->low < f.requested->high) return std::nullopt;
  return f.unallocated->value;
}
/// The pieces' part of what is reserved.
inline std::optional<double> share_in_pieces(const Failure& f) {
  const auto pieces = in_pieces(f);
  if (!pieces || !f.allocated) return std::nullopt;
  return static_cast<double>(pieces->value()) / static_cast<double>((f.allocated->value + *pieces).value());
}

/// Enough is reserved but in pieces. Where the run is estimated (`peak`, of settings that explain what was allocated),
/// its tensors must also fit: a run that needs more than there is fails with pieces or without. Where it is not, the
/// pieces must be a fifth of what is reserved, and half of it where the stack says what was being made, which then
/// explains more: some memory is in pieces in every process. Of the 65 recorded messages (tests/data/oom_runs,
/// oom_held_out), 15 of the 33 that were looked at have as much in pieces as was asked for; a fifth have two of them,
/// which would not have fit in one piece either, and `pieces`, which would.
std::optional<Verdict> fragmentation(const Failure& f, std::optional<Bytes> peak);

/// A bucket of gradients as DeepSpeed makes it: a flat tensor of 5e8 elements (reduce_bucket_size and
/// allgather_bucket_size in deepspeed/runtime/zero/config.py) or of 2e8, which the examples of its documentation set,
/// of two or four bytes. Of a figure of a few MiB only, and where nothing says that the run does not train.
std::optional<Verdict> gradient_bucket(const Failure& f);

/// Memory that grew with every step until there was none left.
std::optional<Verdict> growing_memory(const Failure& f);

/// More is alive than the settings explain, though the tensors asked for are theirs.
std::optional<Bytes> unexplained(const Failure& f, const Reading& r);

inline std::string live_words(const std::vector<MemoryPart>& live) {
  std::string r;
  for (std::size_t i = 0; i < std::min<std::size_t>(live.size(), 4); ++i)
    r += (i == 0 ? "" : ", ") + std::string(name(live[i].cause)) + " " + in_words(live[i].bytes);
  return r;
}

/// The kind of tensor to blame: that of the one asked for, unless it is a small temporary of a kind that takes little,
/// the last drop: then of what fills the memory. Weights are blamed for what they leave no room for only where they
/// leave next to none.
Cause blamed(const Hypothesis& h, const std::vector<MemoryPart>& live, std::optional<Bytes> limit);

/// What the stack was making, where no tensor of the settings that has the size is of that kind: a module that the
/// description does not have, a copy of the model.
std::optional<Verdict> not_described(const Failure& f, const Reading& r);

/// What is in pieces and would have served the request, of a failure that has another cause too.
inline std::string pieces_words(const Failure& f) {
  const auto pieces = in_pieces(f);
  if (!pieces) return {};
  return " " + in_words(*pieces) + " that are reserved and not in use would have served it, were they in one piece.";
}

/// "12.00 GiB would be allocated then, 33.55 GiB was"
inline std::string estimated_words(const Failure& f, const Hypothesis& h) {
  if (!f.allocated) return "all of it fits";
  return in_words(h.before) + " would be allocated when it is asked for, " + in_words(f.allocated->value) + " was";
}

/// "; the stack was making: rotary, during vision_forward": what a stack tells; empty: nothing.
inline std::string site_words(const Failure& f) {
  std::string r;
  if (f.site != AllocationSite::unknown) r = "; the stack was making: " + std::string(name(f.site));
  if (f.phase != RunPhase::unknown) r += ", during " + std::string(name(f.phase));
  return r;
}

std::string tensor_words(const Hypothesis& h);

/// The kind of most of a training's hypotheses, where all of them are weights, gradients or an optimizer's states:
/// what the training holds whatever its inputs are is too much, whichever of them was asked for.
std::optional<Cause> of_states(const Failure& f, const Reading& r);

/// "exp_avg of …, gradient of …": one of each kind, the likeliest first.
std::string size_of_words(const std::vector<Hypothesis>& all);

}  // namespace oom_verdict

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/rules.hpp>
#endif
