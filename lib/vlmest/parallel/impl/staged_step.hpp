// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/parallel/staged_step.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE void estimate_stages(ParallelEstimate& p, const Estimator& estimator, TrainingEstimate& t,
                                   const Device& device, const Network& network, double tokens, double peak_rate) {
  const Layout& l = p.layout;
  const Graph& g = estimator.training_graph();
  const Stages stages = cut(g, l);
  const std::vector<StageTime> times = stage_times(g, stages, estimator.training_works(), device);
  const std::int64_t micro_batches = t.micro_batches;
  const Bytes sent = sent_between(g, stages);
  const Seconds send = time(network, CollectiveKind::send, sent, 2);
  const PipelineTime all = pipeline_time(l.schedule, times, micro_batches, send);
  const PipelineTime without = pipeline_time(l.schedule, times, micro_batches, Seconds{});
  const std::int64_t hops = std::int64_t{l.pp} * l.schedule.chunks - 1, crossings = hops * micro_batches;
  const Seconds waited{std::max(0.0, all.all.value - without.all.value)};
  for (const PhaseKind phase : {PhaseKind::forward, PhaseKind::backward})
    p.communication.push_back({CollectiveKind::send, "pp", phase, crossings, sent * crossings,
                               send * static_cast<double>(crossings), waited * 0.5});
  p.bubble_share = all.bubble_share;

  const TrainingEstimate one = t;
  std::optional<TrainingEstimate> most;
  bool fit = true;
  Bytes gradients_of_most{};
  for (int s = 0; s < l.pp; ++s) {
    const double held = in_flight(l.schedule, s, l.pp, micro_batches) - 1;
    Timeline timeline = stage_timeline(g, estimator.training_timeline(), stages, s, held);
    const Graph own = stage_graph(g, stages, s);
    const Bytes gradients = several::of_role(timeline, Role::gradient),
                optimizer = several::of_role(timeline, Role::optimizer_state);
    if (l.dp > 1) {
      const std::vector<Storage> buckets{{none, 0, none, 0, gradients, Role::buffer}};
      timeline.add(buckets);
    }
    gradients_of_most = std::max(gradients_of_most, gradients);
    TrainingEstimate r = one;
    training_estimate::add_memory(r, own, timeline, device, estimator.allocator, estimator.details);
    r.gradients = gradients;
    r.optimizer = optimizer;
    r.saved_activations = Bytes{};
    const Phase& forward = g.phases[g.phases.size() - 3];
    for (const Storage& x : timeline.storages())
      if (left_by(x, forward)) r.saved_activations += x.bytes;
    RankEstimate& of = p.ranks.emplace_back(RankEstimate{.rank = std::int64_t{s} * l.dp, .ranks = l.dp, .stage = s});
    several::add_training(of, r);
    fit = fit && r.fits;
    if (!most || r.peak > most->peak) {
      most = r;
      p.training = std::move(timeline);
    }
  }
  // Every stage updates its own weights, the one with most of them last.
  const double share =
      static_cast<double>(gradients_of_most.value()) / std::max(1.0, static_cast<double>(one.gradients.value()));
  p.step = all.all + one.step_wall * share;
  if (l.dp > 1) {
    const Seconds reduced = time(network, CollectiveKind::all_reduce, gradients_of_most, l.dp);
    p.communication.push_back(
        {CollectiveKind::all_reduce, "dp", PhaseKind::backward, 1, gradients_of_most, reduced, reduced});
    p.step += reduced;
  }
  p.tokens_per_second = tokens * static_cast<double>(micro_batches) / p.step.value;
  p.mfu = several::model_flops(g, one, estimator.training_works()) * l.dp / (p.step.value * peak_rate);
  t = *most;
  t.fits = fit;
}

}  // namespace vlmest::parallel
