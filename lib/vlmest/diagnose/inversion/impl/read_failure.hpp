// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/inversion/read_failure.hpp>
#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace reading {

VLMEST_INLINE std::vector<MemoryPart> live_at(const Timeline& timeline, const TensorKinds& kinds,
                                              const PlannedAllocation& a) {
  std::array<Bytes, causes.size()> sums{};
  for (const Storage& s : timeline.storages()) {
    const bool state = s.role == Role::optimizer_state;
    if (state && a.moment != Moment::later_step) continue;
    if (a.node == none ? s.tensor >= a.tensor.tensor : !alive(s, a.node)) continue;
    if (s.tensor == a.tensor.tensor) continue;
    sums[static_cast<std::size_t>(kinds.of({s.tensor, "", none, s.bytes}))] += s.bytes;
  }
  std::vector<MemoryPart> r;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > Bytes{}) r.push_back({static_cast<Cause>(i), sums[i]});
  sort_stably(r, [](const auto& a_, const auto& b_) { return a_.bytes > b_.bytes; });
  return r;
}

VLMEST_INLINE std::optional<Hypothesis> grown_cache(const Graph& g, const TensorKinds& kinds,
                                                    const std::vector<PlannedAllocation>& all,
                                                    const FailedRequest& request) {
  const PlannedAllocation* best = nullptr;
  for (const PlannedAllocation& a : all)
    if (a.node != none && a.tensor.tensor != none && std::string_view(a.phase) == "decode" &&
        kinds.of(a.tensor) == Cause::kv_cache && g.tensor(a.tensor.tensor).shape.rank() == 4 &&
        (best == nullptr || a.tensor.bytes > best->tensor.bytes))
      best = &a;
  if (best == nullptr) return std::nullopt;
  const Tensor& t = g.tensor(best->tensor.tensor);
  const std::int64_t length = t.shape[2];
  if (length < 1) return std::nullopt;
  const std::int64_t token = best->tensor.bytes.value() / length;
  if (token < 1) return std::nullopt;
  const std::int64_t tokens = request.size.high.value() / token;
  if (tokens < 1 || tokens * token < request.size.low.value()) return std::nullopt;
  Hypothesis h{.tensor = describe(g, {best->tensor.tensor, "", none, Bytes(token * tokens)}),
               .cause = Cause::kv_cache,
               .phase = "decode",
               .moment = Moment::inference,
               .before = best->before};
  h.tensor.shape[2] = tokens;
  h.agreement = agrees(request.phase, g, *best) * agrees(request.site, g, kinds, *best);
  h.assuming = std::to_string(tokens) + " tokens in the cache";
  for (const PlannedAllocation& a : all) h.alike += &a != best && a.tensor.bytes == best->tensor.bytes ? 1 : 0;
  // The caches of all layers have that length then.
  const Bytes more(token * (tokens - length) * static_cast<std::int64_t>(h.alike));
  h.before = std::max(Bytes{}, h.before + more);
  return h;
}

}  // namespace reading

VLMEST_INLINE Reading read_failure(const Vlm& vlm, const Plan& plan, const Device& device, Mode mode,
                                   const Failure& failure, Estimator& estimator, std::string assuming) {
  const bool training = mode == Mode::training;
  Reading r{.plan = plan, .mode = mode, .assuming = std::move(assuming), .peak = {}, .hypotheses = {}, .live = {}};
  const bool details = std::exchange(estimator.details, false);
  const Estimate e = estimator(vlm, plan, device, training ? Phases::train : Phases::inference);
  estimator.details = details;
  r.peak = training ? e.training.peak : e.inference.peak;
  const Graph& g = training ? estimator.training_graph() : estimator.graph();
  const Timeline& timeline = training ? estimator.training_timeline() : estimator.timeline();
  if (!failure.tensor) return r;
  const std::vector<PlannedAllocation> all = training ? training_allocations(g, timeline, device, estimator.allocator)
                                                      : inference_allocations(g, timeline, device, estimator.allocator);
  const TensorKinds kinds(g);
  const FailedRequest request{*failure.tensor, failure.allocated, failure.phase, failure.site};
  std::vector<const PlannedAllocation*> origins;
  r.hypotheses = hypotheses(g, kinds, all, request, &origins);
  if (!origins.empty()) r.live = reading::live_at(timeline, kinds, *origins.front());
  const bool cached = std::any_of(r.hypotheses.begin(), r.hypotheses.end(),
                                  [](const Hypothesis& h) { return h.cause == Cause::kv_cache && h.agreement > 0.1; });
  if (!training && failure.site == AllocationSite::kv_cache && !cached)
    if (auto h = reading::grown_cache(g, kinds, all, request)) {
      r.hypotheses.insert(r.hypotheses.begin(), std::move(*h));
      double sum = 0;
      for (const Hypothesis& x : r.hypotheses) sum += x.agreement;
      for (Hypothesis& x : r.hypotheses) x.confidence = sum > 0 ? x.agreement / sum : 0;
    }
  for (Hypothesis& h : r.hypotheses)
    if (h.assuming.empty()) h.assuming = r.assuming;
  return r;
}

}  // namespace vlmest::diagnose
