// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <vlmest/parallel/communication_rows.hpp>
#include <vlmest/parallel/ddp_buckets.hpp>
#include <vlmest/parallel/layer_collectives.hpp>
#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/parallel/rank_timeline.hpp>
#include <vlmest/parallel/sharded_stage.hpp>
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

/// What a rank's replicas send each other in a step whose states fully_shard divides: each layer's weights as often as
/// they are gathered, the root's once.
inline std::vector<CommunicationRow> of_shards(const Layout& l, const Strategy& s, const Network& network,
                                               const std::vector<gathered::Unit>& units,
                                               const std::vector<PipelineTask>& tasks) {
  const Gathers times = gathers(s, tasks);
  std::vector<Bytes> layers, reduced;
  for (const gathered::Unit& u : units) {
    layers.push_back(u.gathered);
    reduced.push_back(u.reduced);
  }
  const Bytes root[]{std::exchange(layers.front(), {})};
  several::Rows first{network, l, {}}, rows{network, l, {}};
  using enum CollectiveKind;
  first.add(all_gather, PhaseKind::forward, root, 1);
  rows.add(all_gather, PhaseKind::forward, layers, times.forward);
  if (!first.all.empty() && !rows.all.empty()) {
    rows.all.front().count += first.all.front().count;
    rows.all.front().bytes += first.all.front().bytes;
    rows.all.front().time += first.all.front().time;
  }
  rows.add(all_gather, PhaseKind::backward, layers, times.backward);
  rows.add(reduce_scatter, PhaseKind::backward, reduced, 1);
  return rows.all;
}

/// What fully_shard's modules take the host of a rank, for a micro-batch on average: those that gather.
inline StageTime host_of_shards(const Stages& stages, int rank, const StageReplicas& r,
                                const std::vector<PipelineTask>& tasks, std::int64_t micro_batches, const Device& d) {
  const Gathers times = gathers(r.strategy, tasks);
  std::int64_t layers = 0;
  for (std::size_t unit = 1; unit < r.states.weights.size(); ++unit)
    if (r.states.weights[unit] > Bytes{} && stages.rank(stages.of_weight(static_cast<ScopeId>(unit))) == rank) ++layers;
  const double each = static_cast<double>(layers) / static_cast<double>(micro_batches);
  return {d.fsdp_module.forward * (each * static_cast<double>(times.forward)),
          d.fsdp_module.backward * (each * static_cast<double>(times.backward)),
          {}};
}

/// Puts what a rank's replicas send where it takes longest: gathered weights come while forwards and backwards run, in
/// `busy`; what is reduced goes behind the last of them. How much longer the step takes.
inline Seconds expose(std::vector<CommunicationRow>& rows, Seconds busy) {
  Seconds gathered, reduced;
  for (const CommunicationRow& r : rows) (r.kind == CollectiveKind::all_gather ? gathered : reduced) += r.time;
  const double over = std::max(0.0, gathered.value - busy.value);
  for (CommunicationRow& r : rows)
    r.exposed = r.kind == CollectiveKind::all_gather ? r.time * (over > 0 ? over / gathered.value : 0) : r.time;
  return Seconds{over} + reduced;
}

}  // namespace staged

VLMEST_INLINE void estimate_stages(ParallelEstimate& p, const Estimator& estimator, TrainingEstimate& t,
                                   const StageReplicas& replicas, const Device& device, const Network& network,
                                   double tokens, double peak_rate) {
  const Layout& l = p.layout;
  const Graph& g = estimator.training_graph();
  const Stages stages = cut(g, l);
  expect_chain(g, stages);
  const std::int64_t micro_batches = t.micro_batches;
  const bool divides = l.dp > 1 && l.shard == Shard::fsdp2;
  std::vector<StageTime> hosts;
  for (int s = 0; divides && s < l.pp; ++s)
    hosts.push_back(staged::host_of_shards(stages, s, replicas, pipeline_order(l.schedule, s, l.pp, micro_batches),
                                           micro_batches, device));
  const std::vector<StageTime> times =
      stage_times(g, stages, works_over(network, g, estimator.training_works()), device, hosts);
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
  std::vector<CommunicationRow> of_most;
  Seconds shards_longest;
  for (int s = 0; s < l.pp; ++s) {
    const Graph own = rank_graph(g, stages, s);
    TrainingEstimate r;
    Timeline timeline;
    std::vector<CommunicationRow> sent_by_shards;
    const auto add = [&](Timeline& part, const StretchOfStep& stretch) {
      Bytes gradients = several::of_role(part, Role::gradient);
      if (divides) {
        part = shard_stage(std::move(part), g, stages, s, replicas.strategy, replicas.states, stretch,
                           device.usable_bytes);
        gradients = several::of_role(part, Role::gradient);
      } else if (l.dp > 1) {
        part.set_up(ddp_set_up(g, part, replicas.trained));
        if (l.bucket_views) move_into_buckets(part, g);
        part.add(std::vector<Storage>{
            {none, before_all, none, 0, gradients, Role::buffer, 0, BesideGraph::gradient_bucket}});
      }
      if (l.dp > 1 && l.tp > 1)
        part.add(waiting_gradients(g, [&](NodeId n) { return staged::backward_end(g, stages, s, n); }));
      TrainingEstimate of_part = one;
      training_estimate::add_memory(of_part, own, part, device, estimator.allocator, estimator.details,
                                    stretch.between ? Passes::highest : Passes::first_forward);
      of_part.gradients = gradients;
      of_part.saved_activations = staged::saved(g, part);
      of_part.optimizer = several::of_role(part, Role::optimizer_state);
      if (of_part.peak > r.peak) std::swap(timeline, part);
      r = staged::most_of(r, of_part);
    };
    for (const StretchOfStep& stretch : stretches_of_step(l.schedule, divides, s, l.pp, micro_batches)) {
      std::vector<Timeline> timelines = rank_timelines(g, estimator.training_timeline(), stages, crossing,
                                                       {.rank = s,
                                                        .micro_batches = micro_batches,
                                                        .schedule = l.schedule,
                                                        .behind = stretch.behind,
                                                        .first = stretch.first});
      if (divides && sent_by_shards.empty()) {
        const auto units = stage_units(timelines.back(), g, replicas.strategy, replicas.states);
        sent_by_shards =
            staged::of_shards(l, replicas.strategy, network, units, pipeline_order(l.schedule, s, l.pp, micro_batches));
      }
      for (Timeline& part : timelines) add(part, stretch);
    }
    if (divides) {
      const StageTime& busy = times[static_cast<std::size_t>(s)];
      const Seconds later =
          staged::expose(sent_by_shards, (busy.forward + busy.backward) * static_cast<double>(micro_batches));
      if (later > shards_longest || s == 0) {
        shards_longest = later;
        of_most = sent_by_shards;
      }
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
  if (divides) {
    p.communication.insert(p.communication.end(), of_most.begin(), of_most.end());
    p.step += shards_longest;
  } else if (l.dp > 1) {
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
