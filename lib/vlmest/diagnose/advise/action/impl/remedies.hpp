// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/catalogue.hpp>
#include <vlmest/diagnose/advise/action/remedies.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {

namespace remedies {

/// An action of the catalogue whose line is the same for every run; the figures are the caller's.
inline Action named(ActionId id) {
  const ActionEntry& e = *action_entry(id);
  return {.id = id, .title = std::string(e.title), .how = std::string(e.line)};
}

}  // namespace remedies

VLMEST_INLINE std::vector<Action> memory_remedies(const Verdict& v, const Failure& f) {
  std::vector<Action> r;
  const Bytes peak = v.predicted_peak.value_or(f.allocated ? f.allocated->value : Bytes{});
  const auto fits = [&](Bytes after) { return v.limit && after <= *v.limit; };
  const bool known = !v.explanation || v.explanation->holds;
  if (v.cause == Cause::leak && f.allocated) {
    const Bytes kept = f.growth ? f.allocated->value - std::min(f.growth->first, f.allocated->value)
                                : f.allocated->value - std::min(peak, f.allocated->value);
    Action& a = r.emplace_back(remedies::named(action_id("let-go")));
    a.saves = kept;
    a.peak_after = peak;
    a.fits = fits(peak);
    a.fits_known = known || f.growth;
  }
  if (v.cause == Cause::other_process && f.others) {
    Action& a = r.emplace_back(remedies::named(action_id("free-the-gpu")));
    a.saves = f.others->value;
    a.peak_after = peak;
    a.fits = f.total && peak <= f.total->value;
    a.fits_known = known && v.predicted_peak;
  }
  if (v.cause == Cause::host_memory && f.site == AllocationSite::decoded_media) {
    Action& a = r.emplace_back(remedies::named(action_id("decode-sampled")));
    a.fits_known = false;
    a.generic = true;
  }
  // Pieces are worth joining wherever they would have served the request, whatever else fills the memory. Settings and
  // calls of torch (docs: notes/cuda, "Optimizing memory usage with PYTORCH_ALLOC_CONF"), the surest first: what they
  // leave of the pieces depends on the order of the run's allocations, so that only growing segments are counted on.
  if (const auto pieces = oom_verdict::in_pieces(f)) {
    const bool cause = v.cause == Cause::fragmentation;
    const auto add = [&](Action a, Bytes saves, bool fit) {
      a.saves = saves;
      a.of_reserved = true;
      a.peak_after = peak;
      a.fits = fit;
      a.fits_known = known && cause;
      r.push_back(std::move(a));
    };
    add({.id = action_id("allocator-expandable"),
         .title = "let segments grow, so that what is free lies in one piece",
         .how = "export PYTORCH_ALLOC_CONF=expandable_segments:True  # before 2.9 PYTORCH_CUDA_ALLOC_CONF"},
        *pieces, cause && fits(peak));
    if (cause) {
      add(remedies::named(action_id("empty-cache")), {}, false);
      add(remedies::named(action_id("allocator-gc")), {}, false);
      add({.id = action_id("allocator-max-split"),
           .title = "do not cut large blocks for smaller tensors",
           .how = "export PYTORCH_ALLOC_CONF=max_split_size_mb:512"},
          {}, false);
    }
  }
  return r;
}

VLMEST_INLINE std::vector<Action> time_remedies(const SlowRun& s) {
  std::vector<Action> r;
  const auto span = static_cast<double>(s.gpu.span());
  if (span <= 0) return r;
  const auto add = [&](ActionId id, double gain) {
    const double pct = -100 * std::clamp(gain / span, 0.0, 1.0);
    if (pct > -2) return;
    Action& a = r.emplace_back(remedies::named(id));
    a.time_cost_pct = pct;
    a.fits = true;
  };
  const auto of = [&](Idle i) { return static_cast<double>(s.idle.of(i)); };
  add(action_id("launch-less"), of(Idle::launch));
  add(action_id("load-ahead"), of(Idle::data_loader));
  add(action_id("wait-less"), of(Idle::synchronise));
  add(action_id("allocate-once"), of(Idle::allocation));
  add(action_id("host-work"), of(Idle::host_work));
  add(action_id("pin-copies"), static_cast<double>(s.gpu.exposed_copies));
  add(action_id("overlap-communication"), static_cast<double>(s.gpu.exposed_communication));
  add(action_id("pad-products"), s.padding_saves.value * 1e9);
  sort_stably(r, [](const Action& a, const Action& b) { return a.time_cost_pct < b.time_cost_pct; });
  return r;
}

}  // namespace vlmest::diagnose
