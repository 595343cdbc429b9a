// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <variant>

#include <vlmest/graph/stretches.hpp>
#include <vlmest/parallel/layer_collectives.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace divided {

/// How long the GPU runs between a node and the first that reads a result of it, in its phase.
inline Seconds hidden_behind(const Graph& g, NodeId n, NodeId phase_end, std::span<const Work> of_ops) {
  const auto reads = [&](const Node& at) {
    for (const TensorId in : g.inputs(at))
      for (const TensorId out : g.outputs(g.node(n)))
        if (in != none && g.owner(in) == g.owner(out)) return true;
    return false;
  };
  Seconds r;
  for (NodeId at = n + 1; at < phase_end && !reads(g.node(at)); ++at)
    if (!std::holds_alternative<CollectiveOp>(g.op(g.node(at))))
      r += of_ops[static_cast<std::size_t>(g.node(at).op)].time;
  return r;
}

}  // namespace divided

VLMEST_INLINE std::vector<CommunicationRow> communication(const Graph& g, const Network& network, const char* group,
                                                          std::int64_t micro_batches, std::span<const char> counts,
                                                          std::span<const Work> of_ops) {
  std::vector<CommunicationRow> r;
  const std::vector<Repeated> of_phases = stretches(g, micro_batches);
  for (std::size_t i = 0; i < g.phases.size(); ++i) {
    const Phase& p = g.phases[i];
    const std::int64_t times = of_phases[i].times;
    for (NodeId n = p.first; n < p.last; ++n) {
      const auto* op = std::get_if<CollectiveOp>(&g.op(g.node(n)));
      if (!op || (!counts.empty() && !counts[static_cast<std::size_t>(n)])) continue;
      auto at = std::find_if(r.begin(), r.end(),
                             [&](const CommunicationRow& c) { return c.kind == op->kind && c.phase == p.kind; });
      if (at == r.end()) at = r.insert(r.end(), CommunicationRow{.kind = op->kind, .group = group, .phase = p.kind});
      at->count += times;
      at->bytes += op->bytes * times;
      const Seconds alone = time(network, op->kind, op->bytes, op->ranks);
      Seconds exposed = alone;
      if (!of_ops.empty())
        exposed.value = std::max(0.0, alone.value - divided::hidden_behind(g, n, p.last, of_ops).value);
      at->time += alone * static_cast<double>(times);
      at->exposed += exposed * static_cast<double>(times);
    }
  }
  return r;
}

namespace divided {

/// How much longer the collectives of these phases, or of all, hold the GPU up than their ops were timed.
inline Seconds change(const std::vector<CommunicationRow>& rows, const Graph& g, const Device& d,
                      std::optional<PhaseKind> of, std::int64_t micro_batches) {
  Seconds r;
  for (const CommunicationRow& c : rows)
    if (!of || *of == c.phase) r += c.exposed;
  const std::vector<Repeated> of_phases = stretches(g, micro_batches);
  for (std::size_t i = 0; i < g.phases.size(); ++i) {
    const Phase& p = g.phases[i];
    if (of && *of != p.kind) continue;
    const auto times = static_cast<double>(of_phases[i].times);
    for (NodeId n = p.first; n < p.last; ++n)
      if (const auto* op = std::get_if<CollectiveOp>(&g.op(g.node(n)))) r.value -= op_time(*op, d).time.value * times;
  }
  return r;
}

}  // namespace divided

VLMEST_INLINE void put_on_network(InferenceEstimate& e, const std::vector<CommunicationRow>& rows, const Graph& g,
                                  const Device& d) {
  const Seconds prefill = divided::change(rows, g, d, PhaseKind::prefill, 1),
                decode = divided::change(rows, g, d, PhaseKind::decode, 1);
  for (Seconds* t : {&e.prefill.wall, &e.prefill.gpu}) *t += prefill;
  for (Seconds* t : {&e.decode.wall, &e.decode.gpu}) *t += decode;
}

VLMEST_INLINE void put_on_network(TrainingEstimate& e, const std::vector<CommunicationRow>& rows, const Graph& g,
                                  const Device& d) {
  const Seconds change = divided::change(rows, g, d, {}, e.micro_batches);
  for (Seconds* t : {&e.wall, &e.gpu}) *t += change;
}

VLMEST_INLINE std::vector<Work> works_over(const Network& network, const Graph& g, std::span<const Work> of_ops) {
  std::vector<Work> r(of_ops.begin(), of_ops.end());
  for (const Node& n : g.nodes)
    if (const auto* op = std::get_if<CollectiveOp>(&g.op(n)))
      r[static_cast<std::size_t>(n.op)].time = time(network, op->kind, op->bytes, op->ranks);
  return r;
}

}  // namespace vlmest::parallel
