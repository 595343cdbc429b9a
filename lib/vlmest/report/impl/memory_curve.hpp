// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/report/memory_curve.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {
namespace memory_curve_detail {

/// What each role holds while each node runs, and from when to when each storage lives.
inline void add_tensors(MemoryCurve& c, const Timeline& timeline, const allocator::Process& process,
                        std::span<const allocator::NodeMemory> nodes) {
  const auto storages = timeline.storages();
  const NodeId begin = nodes.front().node;
  std::array<Bytes, roles> held{};
  const auto role = [&](const Storage& s) -> Bytes& { return held[static_cast<std::size_t>(s.role)]; };
  std::size_t next = 0;
  for (; next < storages.size() && storages[next].born <= begin; ++next)
    if (alive(storages[next], begin)) role(storages[next]) += process.occupied(next);
  for (std::size_t i = next; i < storages.size(); ++i)
    if (storages[i].role == Role::optimizer_state) role(storages[i]) += process.occupied(i);
  NodeId done = begin;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const NodeId n = nodes[k].node;
    for (; done < n; ++done) {
      // What comes and goes between two nodes was never held.
      for (const auto i : timeline.frees(done + 1))
        if (const Storage& s = timeline.storage(i); s.role != Role::optimizer_state && s.born <= done)
          role(s) -= process.occupied(static_cast<std::size_t>(i));
      for (; next < storages.size() && storages[next].born <= done + 1; ++next)
        if (const Storage& s = storages[next]; s.role != Role::optimizer_state && (s.dies == none || s.dies > done + 1))
          role(s) += process.occupied(next);
    }
    MemorySample& m = c.samples[k];
    m.by_role = held;
    m.by_role[static_cast<std::size_t>(Role::workspace)] += nodes[k].libraries + nodes[k].scratch;
  }
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const Storage& s = storages[i];
    const Bytes bytes = process.occupied(i);
    if (bytes == Bytes{}) continue;
    const bool always = s.role == Role::optimizer_state;
    const NodeId last = nodes.back().node + 1;
    const NodeId from = always ? begin : std::max(s.born, begin);
    const NodeId to = always || s.dies == none ? last : std::min(s.dies, last);
    if (from >= to) continue;
    c.lives.push_back(
        {live_tensor(s, bytes), static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - begin)});
  }
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (nodes[k].scratch > Bytes{}) c.lives.push_back({{none, "scratch", nodes[k].node, nodes[k].scratch}, k, k + 1});
}

}  // namespace memory_curve_detail

VLMEST_INLINE MemoryCurve memory_curve(const Graph& g, const Timeline& timeline, const Device& device,
                                       const allocator::AllocatorConfig& settings) {
  MemoryCurve c;
  std::vector<allocator::NodeMemory> nodes;
  allocator::Process process(g, timeline, device.sm, without_limit(device, settings));
  allocator::walk(
      g.script, g, process, [&](const allocator::NodeMemory& m) { nodes.push_back(m); },
      [](const allocator::PhaseMemory&) {});
  if (nodes.empty()) return c;
  c.samples.reserve(nodes.size());
  std::vector<Seconds> of_ops;
  of_ops.reserve(g.ops.size());
  for (const Op& op : g.ops) of_ops.push_back(work(op, device).time);
  for (const auto& m : nodes) {
    const Seconds t = of_ops[static_cast<std::size_t>(g.node(m.node).op)];
    c.samples.push_back(
        {.node = m.node, .start = c.end, .length = t, .allocated = m.allocated, .reserved = m.reserved});
    c.end += t;
  }
  const NodeId begin = nodes.front().node;
  for (const Phase& p : g.phases) {
    CurvePhase q{p.kind, static_cast<std::size_t>(p.first - begin), static_cast<std::size_t>(p.last - begin)};
    for (std::size_t k = q.first; k < q.last; ++k) q.peak = std::max(q.peak, c.samples[k].allocated);
    c.phases.push_back(q);
  }
  memory_curve_detail::add_tensors(c, timeline, process, nodes);
  return c;
}

}  // namespace vlmest
