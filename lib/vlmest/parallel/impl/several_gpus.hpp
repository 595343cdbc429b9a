// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <variant>

#include <vlmest/graph/stretches.hpp>
#include <vlmest/nn/trainable.hpp>
#include <vlmest/parallel/communication_rows.hpp>
#include <vlmest/parallel/data_parallel_timeline.hpp>
#include <vlmest/parallel/deepspeed.hpp>
#include <vlmest/parallel/layer_collectives.hpp>
#include <vlmest/parallel/several_gpus.hpp>
#include <vlmest/parallel/staged_step.hpp>
#include <vlmest/parallel/states.hpp>
#include <vlmest/parallel/step_time.hpp>
#include <vlmest/parallel/waiting_gradients.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE Bytes nccl_memory(std::int64_t communicators, std::int64_t channels, std::int64_t neighbours) {
  if (communicators == 0) return {};
  constexpr std::int64_t granule = std::int64_t{2} << 20, kernels = std::int64_t{360} << 20;
  constexpr std::int64_t receiving = 5;  // granules of 9.2 MiB
  constexpr std::int64_t point_to_point = std::int64_t{430} << 20;
  const auto tables = 3 * static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(channels))) + 2;
  return Bytes(kernels + communicators * granule * (tables + channels * (receiving + 1)) + neighbours * point_to_point);
}

VLMEST_INLINE std::int64_t parameters_without_gradient(const Graph& g, const Plan& plan) {
  std::vector<char> has(g.tensors.size(), 0);
  for (const Tensor& t : g.tensors)
    if (t.role == Role::gradient && t.of != none) has[static_cast<std::size_t>(t.of)] = 1;
  std::int64_t r = 0;
  for (std::size_t i = 0; i < g.loaded().size(); ++i)
    if (g.tensors[i].alias_of == none && trains(plan, g, g.tensors[i]) && !has[i]) ++r;
  return r;
}

namespace several {

/// The same in torch's words; DeepSpeed's stages have states of their own (deepspeed.hpp), and here its work on the
/// host.
inline Strategy strategy(const Layout& l) {
  Strategy s{.gpus = holders(l), .bucket_views = l.bucket_views};
  if (l.shard == Shard::fsdp2) s.sharding = l.reshard_after_forward ? Sharding::parameters : Sharding::gradients;
  if (l.shard == Shard::fsdp2) s.reduce_dtype = l.reduce_dtype;
  if (l.shard == Shard::zero1 || l.shard == Shard::zero2) s.sharding = Sharding::optimizer;
  if (l.shard == Shard::zero3) s.sharding = Sharding::parameters;
  return s;
}

/// What the host does for attention that goes round: each backward sends as often as there are ranks, each forward and
/// backward gathers once.
inline Seconds of_rings(const Graph& g, const Layout& l, std::int64_t micro_batches, const Device& d) {
  if (l.cp == 1) return {};
  std::int64_t gathers = 0, sends = 0;
  for (const Repeated& s : stretches(g, micro_batches))
    for (NodeId n = s.first; n < s.last; ++n)
      if (const auto* op = std::get_if<CollectiveOp>(&g.op(g.node(n))))
        (op->kind == CollectiveKind::send ? sends : gathers) += s.times;
  const std::int64_t backwards = sends / l.cp, forwards = gathers - backwards;
  return d.ring_attention.forward * static_cast<double>(forwards) +
         d.ring_attention.backward * static_cast<double>(backwards);
}

/// What a step sends: `beside` forwards and backwards, and after the optimizer.
inline void add_rows(Rows& rows, const Graph& g, const Timeline& whole, const Layout& l, const ModelStates& states,
                     std::span<const TensorId> trained, std::int64_t micro_batches) {
  using enum CollectiveKind;
  const DType type = trained.empty() ? DType::bf16 : g.tensor(trained.front()).dtype;
  const Bytes all[]{total(states.trained)};
  switch (l.shard) {
    case Shard::none: rows.add(all_reduce, PhaseKind::backward, ddp_buckets(g, whole, trained), 1); return;
    case Shard::fsdp2:
      rows.add(all_gather, PhaseKind::forward, states.weights, micro_batches);
      if (l.reshard_after_forward) rows.add(all_gather, PhaseKind::backward, states.weights, micro_batches);
      rows.add(reduce_scatter, PhaseKind::backward, in_type(states.trained, type, l.reduce_dtype), micro_batches);
      return;
    case Shard::zero1:
    case Shard::zero2:
    case Shard::zero3: break;
  }
  const ZeroSettings settings;
  const bool divides_weights = l.shard == Shard::zero3;
  std::vector<Bytes> buckets;
  const Bytes full = size_of(Elements(settings.reduce_bucket), type);
  for (Bytes left = all[0]; left > Bytes{}; left -= buckets.back()) buckets.push_back(std::min(left, full));
  const std::int64_t times = l.shard == Shard::zero1 ? 1 : micro_batches;
  if (divides_weights) {
    rows.add(all_gather, PhaseKind::forward, states.weights, micro_batches);
    rows.add(all_gather, PhaseKind::backward, states.weights, micro_batches);
  }
  rows.add(divides_weights ? reduce_scatter : all_reduce, PhaseKind::backward, in_type(buckets, type, l.reduce_dtype),
           times);
  if (!divides_weights) rows.add(all_gather, PhaseKind::step, all, 1);
}

}  // namespace several

VLMEST_INLINE ParallelEstimate estimate_several(const Estimator& estimator, Estimate& e, const Plan& plan,
                                                const Device& device, const Layout& layout, const Network& network,
                                                Phases phases) {
  expect_modelled(layout);
  ParallelEstimate p{.layout = layout, .network = network.name};
  const std::int64_t gpus = layout.gpus();
  if (layout.pp > 1 && has_inference(phases))
    throw Error("layout.mesh", "pp=" + std::to_string(layout.pp) + ": inference in a pipeline is not modelled",
                "ask for training alone: Phases::train");
  if (layout.cp > 1 && has_inference(phases))
    throw Error("layout.mesh", "cp=" + std::to_string(layout.cp) + ": inference of divided sequences is not modelled",
                "ask for training alone: Phases::train");
  // torch 2.11 with transformers 5.17: its forward puts DTensors in the place of the experts' local weights, which
  // grouped_mm then finds beside tensors ("got mixed torch.Tensor and DTensor").
  if (layout.ep > 1 && layout.dp > 1 && layout.shard == Shard::none && has_training(phases))
    throw Error("layout.shard", "DistributedDataParallel does not run with divided experts", "take layout.shard=fsdp2");
  // One for each group that a rank belongs to; ranks that divide sequences hold states together with replicas.
  const std::int64_t groups = (holders(layout) > 1 ? 1 : 0) + (layer_ranks(layout) > 1 ? 1 : 0) +
                              (layout.pp > 1 ? 1 : 0) + (layout.cp > 1 && layout.dp > 1 ? 1 : 0);
  // A pipeline's first and last stages have one neighbour, those between them two; parts of sequences go round.
  const std::int64_t neighbours = std::min(2, std::max(layout.pp, layout.cp) - 1);
  const Bytes nccl = nccl_memory(groups, several::most_channels(network, gpus), neighbours);
  p.outside = device.memory_bytes - device.usable_bytes + nccl;
  const Device inside = several::without(device, nccl);
  RankEstimate all{.ranks = gpus};
  const DType trained_in = plan.amp ? DType::bf16 : plan.param_dtype.value_or(plan.dtype);
  const double peak_rate = peak(device, trained_in).value * static_cast<double>(gpus);
  // Ranks that divide layers run the same tokens, each its part of their FLOPs.
  const auto tokens = static_cast<double>(e.sequences.batch * e.sequences.seq) * layout.dp;
  const double parts_of_flops = static_cast<double>(holders(layout)) * layer_ranks(layout);
  if (has_inference(phases)) {
    InferenceEstimate& i = e.inference;
    i.fits = inference_estimate::fits(i, estimator.graph(), estimator.timeline(), inside, estimator.allocator);
    all = several::inference_rank(i, gpus);
    if (layer_ranks(layout) > 1) {
      p.communication = communication(estimator.graph(), network, layer_group(layout));
      put_on_network(i, p.communication, estimator.graph(), device);
    }
    p.step = i.prefill.wall;
    p.tokens_per_second = i.tokens_per_second(plan.batch) * layout.dp;
    const double rate = peak(device, plan.amp ? DType::bf16 : plan.dtype).value * static_cast<double>(gpus);
    p.mfu = static_cast<double>(i.prefill.work.flops.value()) * parts_of_flops / (p.step.value * rate);
  }
  if (!has_training(phases)) {
    p.ranks.push_back(all);
    return p;
  }

  TrainingEstimate& t = e.training;
  const Graph& g = estimator.training_graph();
  std::vector<CommunicationRow> of_layers;
  if (layer_ranks(layout) > 1) {
    of_layers = communication(g, network, layer_group(layout), t.micro_batches);
    put_on_network(t, of_layers, g, device);
  }
  if (layout.cp > 1) {
    of_layers = communication(g, network, "cp", t.micro_batches, {}, estimator.training_works());
    put_on_network(t, of_layers, g, device);
  }
  const auto is_trained = [&](const Tensor& x) { return trains(plan, g, x); };
  const std::vector<TensorId> trained = trained_weights(g, is_trained);
  const ModelStates states = model_states(g, is_trained);
  check_cast(g, states.unit_of);
  const Strategy strategy = several::strategy(layout);
  if (layout.pp > 1) {
    estimate_stages(p, estimator, t, {trained, strategy, states}, inside, network, tokens, peak_rate);
    return p;
  }
  const Timeline& whole = estimator.training_timeline();

  several::Rows rows{network, layout, {}};
  several::add_rows(rows, g, whole, layout, states, trained, t.micro_batches);
  const std::vector<CommunicationRow> of_replicas = std::move(rows.all);
  StepParts parts{
      .beside = {},
      .after = {},
      .update = t.step_wall * (1.0 / vlmest::parallel::parts(placements(strategy).optimizer, mesh(strategy))),
      .host = several::of_rings(g, layout, t.micro_batches, device)};
  if (is_zero(layout.shard) && !trained.empty())
    parts.update =
        zero_update(zero_partition(g, trained, layout), g.tensor(trained.front()).dtype, plan.optimizer, device);
  for (const CommunicationRow& c : of_replicas) (c.phase == PhaseKind::step ? parts.after : parts.beside) += c.time;
  // DeepSpeed reduces on the stream of the kernels unless overlap_comm is set, which only stage 3 does by itself.
  const bool in_turn = layout.shard == Shard::zero1 || layout.shard == Shard::zero2;
  StepParts alone = parts;
  alone.beside = alone.after = Seconds{};
  const Seconds without = step_time(strategy, states, alone, t, device);
  Seconds hidden_behind;
  if (in_turn) std::swap(hidden_behind, parts.beside);
  p.step = step_time(strategy, states, parts, t, device) + hidden_behind;
  const double beside = (in_turn ? hidden_behind : parts.beside).value;
  const double exposed = p.step.value - without.value - parts.after.value;
  p.communication.insert(p.communication.end(), of_layers.begin(), of_layers.end());
  for (CommunicationRow c : of_replicas) {
    c.exposed = c.phase == PhaseKind::step ? c.time
                : beside > 0               ? c.time * (std::max(0.0, exposed) / beside)
                                           : Seconds{};
    p.communication.push_back(c);
  }
  p.tokens_per_second = tokens * static_cast<double>(t.micro_batches) / p.step.value;
  p.mfu = several::model_flops(g, t, estimator.training_works()) * parts_of_flops / (p.step.value * peak_rate);

  const TrainingEstimate one = t;
  const auto remember = [&](const Timeline& timeline, Bytes weights, Bytes gradients, Bytes optimizer) {
    TrainingEstimate r = one;
    training_estimate::add_memory(r, g, timeline, inside, estimator.allocator, estimator.details);
    if (weights > Bytes{}) r.weights = weights;
    r.gradients = gradients;
    r.optimizer = optimizer;
    return r;
  };
  if (is_zero(layout.shard)) {
    // The first and the last rank's partitions differ in when their gradients come; those between lie between.
    bool all_fit = true;
    std::optional<TrainingEstimate> most;
    for (std::int64_t rank = 0; rank < layout.dp;) {
      const std::int64_t equal = rank == 0 ? 1 : rank + 1 < layout.dp ? layout.dp - 2 : 1;
      const ZeroRank z = zero_rank(g, whole, trained, layout, rank, plan.optimizer);
      const TrainingEstimate r = remember(z.timeline, z.weights, z.gradients, z.optimizer);
      RankEstimate& of = p.ranks.emplace_back(all);
      of.rank = rank;
      of.ranks = equal;
      several::add_training(of, r);
      all_fit = all_fit && r.fits;
      if (!most || r.peak > most->peak) {
        most = r;
        p.training = z.timeline;
      }
      rank += equal;
    }
    t = *most;
    t.fits = all_fit;
    return p;
  }
  Timeline timeline = data_parallel_timeline(g, whole, strategy, states, trained, inside.usable_bytes);
  if (layer_ranks(layout) > 1 && has_buckets(strategy))
    timeline.add(waiting_gradients(g, [&](NodeId n) {
      const auto holds = [n](const Phase& x) { return n >= x.first && n < x.last; };
      return std::find_if(g.phases.begin(), g.phases.end(), holds)->last;
    }));
  const Bytes buckets = placements(strategy).gradients.holder == Holder::bucket ? total(states.trained) : Bytes{};
  const Bytes gradients = several::of_role(timeline, Role::gradient) + buckets;
  const Bytes optimizer = several::of_role(timeline, Role::optimizer_state);
  t = remember(timeline, Bytes{}, gradients, optimizer);
  p.training = std::move(timeline);
  several::add_training(all, t);
  p.ranks.push_back(all);
  return p;
}

}  // namespace vlmest::parallel
