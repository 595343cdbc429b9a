// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/parallel/ddp_buckets.hpp>
#include <vlmest/parallel/layer_collectives.hpp>
#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/parallel/rank_timeline.hpp>
#include <vlmest/parallel/staged_step.hpp>
#include <vlmest/parallel/waiting_gradients.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace staged {

/// Of two parts of a step the memory that both need; the last one's is of all that comes after it.
inline TrainingEstimate most_of(const TrainingEstimate& before, TrainingEstimate r) {
  if (before.peak == Bytes{}) return r;
  const auto higher = [](const allocator::PhaseMemory& a, const allocator::PhaseMemory& b) {
    return a.peak > b.peak ? a : b;
  };
  r.forward = higher(before.forward, r.forward);
  r.backward = higher(before.backward, r.backward);
  r.saved_activations = std::max(before.saved_activations, r.saved_activations);
  r.reserved = std::max(before.reserved, r.reserved);
  r.reserved_in_loop = std::max(before.reserved_in_loop, r.reserved_in_loop);
  r.fits = r.fits && before.fits;
  if (before.peak > r.peak) {
    r.peak = before.peak;
    r.peak_phase = before.peak_phase;
    r.tensors = before.tensors;
    r.parts = before.parts;
  }
  return r;
}

/// Where the backward of a node ends on the rank that runs it; none on others.
inline NodeId backward_end(const Graph& g, const Stages& stages, int rank, NodeId node) {
  const int stage = stages.stage(node);
  if (stages.rank(stage) != rank) return none;
  for (const Phase& p : g.phases) {
    if (node >= p.last) continue;
    for (NodeId n = p.last; n > node; --n)
      if (stages.stage(n - 1) == stage) return n;
  }
  return none;
}

/// Activations that forwards leave, with those of the micro-batches in flight, where they are most.
inline Bytes saved(const Graph& g, const Timeline& t) {
  Bytes most{};
  for (const Phase& p : g.phases) {
    if (p.kind != PhaseKind::forward) continue;
    Bytes sum{};
    for (const Storage& s : t.storages()) {
      const bool other = s.beside == BesideGraph::in_flight && s.born <= p.last && s.dies > p.last;
      if (other || (s.beside == BesideGraph::nothing && left_by(s, p))) sum += s.bytes;
    }
    most = std::max(most, sum);
  }
  return most;
}

/// The collectives of divided layers on the rank that they take longest: each runs those of its own stages.
inline std::vector<CommunicationRow> of_layers(const Graph& g, const Stages& stages, const Network& network,
                                               std::int64_t micro_batches) {
  std::vector<CommunicationRow> most;
  Seconds longest;
  for (int rank = 0; rank < stages.ranks; ++rank) {
    std::vector<char> own(g.nodes.size());
    for (NodeId n = 0; n < static_cast<NodeId>(own.size()); ++n)
      own[static_cast<std::size_t>(n)] = stages.rank(stages.stage(n)) == rank;
    std::vector<CommunicationRow> rows = communication(g, network, "tp", micro_batches, own);
    Seconds all;
    for (const CommunicationRow& r : rows) all += r.time;
    if (!(all > longest)) continue;
    longest = all;
    most = std::move(rows);
  }
  return most;
}

}  // namespace staged

VLMEST_INLINE void estimate_stages(ParallelEstimate& p, const Estimator& estimator, TrainingEstimate& t,
                                   std::span<const TensorId> trained, const Device& device, const Network& network,
                                   double tokens, double peak_rate) {
  const Layout& l = p.layout;
  const Graph& g = estimator.training_graph();
  const Stages stages = cut(g, l);
  expect_chain(g, stages);
  const std::vector<StageTime> times =
      stage_times(g, stages, works_over(network, g, estimator.training_works()), device);
  const std::int64_t micro_batches = t.micro_batches;
  const std::vector<Crossing> crossing = crossings(g, stages);
  const std::vector<Bytes> each = sent(g, stages, crossing);
  const Bytes largest = *std::max_element(each.begin(), each.end());
  const Seconds send = time(network, CollectiveKind::send, largest, 2, between_stages(l));
  const PipelineTime all = pipeline_time(l.schedule, times, micro_batches, send);
  const PipelineTime without = pipeline_time(l.schedule, times, micro_batches, Seconds{});
  const std::int64_t hops = std::int64_t{l.pp} * l.schedule.chunks - 1, crossings = hops * micro_batches;
  if (l.tp > 1) p.communication = staged::of_layers(g, stages, network, micro_batches);
  const Seconds waited{std::max(0.0, all.all.value - without.all.value)};
  for (const PhaseKind phase : {PhaseKind::forward, PhaseKind::backward})
    p.communication.push_back({CollectiveKind::send, "pp", phase, crossings, largest * crossings,
                               send * static_cast<double>(crossings), waited * 0.5});
  p.bubble_share = all.bubble_share;

  const TrainingEstimate one = t;
  std::optional<TrainingEstimate> most;
  bool fit = true;
  Bytes gradients_of_most{};
  for (int s = 0; s < l.pp; ++s) {
    const Graph own = rank_graph(g, stages, s);
    TrainingEstimate r;
    Timeline timeline;
    for (Timeline& part : rank_timelines(g, estimator.training_timeline(), stages, crossing,
                                         {.rank = s, .micro_batches = micro_batches, .schedule = l.schedule})) {
      const Bytes gradients = several::of_role(part, Role::gradient);
      if (l.dp > 1) {
        part.set_up(ddp_set_up(g, part, trained));
        if (l.bucket_views) move_into_buckets(part, g);
        part.add(std::vector<Storage>{
            {none, before_all, none, 0, gradients, Role::buffer, 0, BesideGraph::gradient_bucket}});
      }
      if (l.dp > 1 && l.tp > 1)
        part.add(waiting_gradients(g, [&](NodeId n) { return staged::backward_end(g, stages, s, n); }));
      TrainingEstimate of_part = one;
      training_estimate::add_memory(of_part, own, part, device, estimator.allocator, estimator.details,
                                    Passes::highest);
      of_part.gradients = gradients;
      of_part.saved_activations = staged::saved(g, part);
      of_part.optimizer = several::of_role(part, Role::optimizer_state);
      if (of_part.peak > r.peak) std::swap(timeline, part);
      r = staged::most_of(r, of_part);
    }
    gradients_of_most = std::max(gradients_of_most, r.gradients);
    RankEstimate& of =
        p.ranks.emplace_back(RankEstimate{.rank = s * between_stages(l), .ranks = between_stages(l), .stage = s});
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
    const Seconds reduced = time(network, CollectiveKind::all_reduce, gradients_of_most, l.dp, between_replicas(l));
    p.communication.push_back(
        {CollectiveKind::all_reduce, "dp", PhaseKind::backward, 1, gradients_of_most, reduced, reduced});
    p.step += reduced;
  }
  p.tokens_per_second = tokens * static_cast<double>(micro_batches) / p.step.value;
  p.mfu = several::model_flops(g, one, estimator.training_works()) * static_cast<double>(between_stages(l)) /
          (p.step.value * peak_rate);
  t = *most;
  t.fits = fit;
}

}  // namespace vlmest::parallel
