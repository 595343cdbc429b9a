// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <variant>

#include <vlmest/parallel/divided_layers.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE std::vector<CommunicationRow> communication(const Graph& g, const Network& network, const char* group,
                                                          std::int64_t micro_batches) {
  std::vector<CommunicationRow> r;
  // With several micro-batches the graph has forward and backward twice: the first, and one for all others.
  const bool twice = micro_batches > 1;
  for (std::size_t i = 0; i < g.phases.size(); ++i) {
    const Phase& p = g.phases[i];
    const std::int64_t times = twice && (i == 2 || i == 3) ? micro_batches - 1 : 1;
    for (NodeId n = p.first; n < p.last; ++n) {
      const auto* op = std::get_if<CollectiveOp>(&g.op(g.node(n)));
      if (!op) continue;
      auto at = std::find_if(r.begin(), r.end(),
                             [&](const CommunicationRow& c) { return c.kind == op->kind && c.phase == p.kind; });
      if (at == r.end()) at = r.insert(r.end(), CommunicationRow{.kind = op->kind, .group = group, .phase = p.kind});
      at->count += times;
      at->bytes += op->bytes * times;
      at->time += time(network, op->kind, op->bytes, op->ranks) * static_cast<double>(times);
      at->exposed = at->time;
    }
  }
  return r;
}

namespace divided {

/// What the collectives of these phases take, as the network has it and as the ops were timed.
inline Seconds change(const std::vector<CommunicationRow>& rows, const Graph& g, const Device& d,
                      std::optional<PhaseKind> of, std::int64_t micro_batches) {
  Seconds r;
  for (const CommunicationRow& c : rows)
    if (!of || *of == c.phase) r += c.time;
  for (std::size_t i = 0; i < g.phases.size(); ++i) {
    const Phase& p = g.phases[i];
    if (of && *of != p.kind) continue;
    const auto times = static_cast<double>(micro_batches > 1 && (i == 2 || i == 3) ? micro_batches - 1 : 1);
    for (NodeId n = p.first; n < p.last; ++n)
      if (const auto* op = std::get_if<CollectiveOp>(&g.op(g.node(n)))) r.value -= op_time(*op, d).time.value * times;
  }
  return r;
}

}  // namespace divided

VLMEST_INLINE ParallelEstimate estimate_divided(const Estimator& estimator, Estimate& e, const Plan& plan,
                                                const Device& device, const Layout& layout, const Network& network,
                                                Phases phases) {
  ParallelEstimate p{.layout = layout, .network = network.name};
  const std::int64_t gpus = layout.gpus();
  const char* group = layout.ep > 1 ? "ep" : "tp";
  const Bytes nccl = nccl_memory(1, several::most_channels(network, gpus));
  p.outside = device.memory_bytes - device.usable_bytes + nccl;
  const Device inside = several::without(device, nccl);
  RankEstimate all{.ranks = gpus};
  // Every rank runs the same tokens.
  const auto tokens = static_cast<double>(e.sequences.batch * e.sequences.seq);
  const double peak_rate = peak(device, plan.amp ? DType::bf16 : plan.dtype).value;
  if (has_inference(phases)) {
    InferenceEstimate& i = e.inference;
    const Graph& g = estimator.graph();
    i.fits = inference_estimate::fits(i, g, estimator.timeline(), inside, estimator.allocator);
    all = several::inference_rank(i, gpus);
    p.communication = communication(g, network, group);
    const Seconds prefill = divided::change(p.communication, g, device, PhaseKind::prefill, 1),
                  decode = divided::change(p.communication, g, device, PhaseKind::decode, 1);
    for (Seconds* t : {&i.prefill.wall, &i.prefill.gpu}) *t += prefill;
    for (Seconds* t : {&i.decode.wall, &i.decode.gpu}) *t += decode;
    p.step = i.prefill.wall;
    p.tokens_per_second = i.tokens_per_second(plan.batch);
    p.mfu = static_cast<double>(i.prefill.work.flops.value()) / (p.step.value * peak_rate);
  }
  if (has_training(phases)) {
    TrainingEstimate& t = e.training;
    const Graph& g = estimator.training_graph();
    t.fits = training_estimate::fits(t, g, estimator.training_timeline(), inside, estimator.allocator);
    several::add_training(all, t);
    const std::vector<CommunicationRow> rows = communication(g, network, group, t.micro_batches);
    const Seconds change = divided::change(rows, g, device, {}, t.micro_batches);
    for (Seconds* s : {&t.wall, &t.gpu}) *s += change;
    p.communication.insert(p.communication.end(), rows.begin(), rows.end());
    p.training = estimator.training_timeline();
    p.step = t.wall;
    p.tokens_per_second = tokens * static_cast<double>(t.micro_batches) / p.step.value;
    p.mfu = several::model_flops(g, t, estimator.training_works()) / (p.step.value * peak_rate);
  }
  p.ranks.push_back(all);
  return p;
}

}  // namespace vlmest::parallel
