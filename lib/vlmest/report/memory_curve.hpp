// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/analysis/work.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/replay.hpp>

namespace vlmest {

inline constexpr std::size_t roles = static_cast<std::size_t>(Role::optimizer_state) + 1;

/// Memory while one node runs.
struct MemorySample {
  NodeId node = 0;
  Seconds start{}, length{};           ///< from the first node on, kernel times one after the other
  Bytes allocated{}, reserved{};       ///< the node's scratch included
  std::array<Bytes, roles> by_role{};  ///< by Role; they add up to `allocated`
};

/// A phase's samples.
struct CurvePhase {
  PhaseKind kind = PhaseKind::prefill;
  std::size_t first = 0, last = 0;  ///< one past the end
  Bytes peak{};
};

/// One storage of at least one byte, for as long as it is held.
struct LifeSpan {
  LiveTensor tensor;
  std::size_t first = 0, last = 0;  ///< samples; one past the end
};

/// Memory over the phases of a graph, as the estimate replays them.
struct MemoryCurve {
  std::vector<MemorySample> samples;
  std::vector<CurvePhase> phases;
  std::vector<LifeSpan> lives;
  Seconds end{};
};

namespace memory_curve {

/// What each role holds while each node runs, and from when to when each storage lives.
void add_tensors(MemoryCurve& c, const Timeline& timeline, const allocator::Process& process,
                 std::span<const allocator::NodeMemory> nodes);

/// `replay` runs the phases in a process and tells its observer of the nodes that count.
template <class Replay>
MemoryCurve of(const Graph& g, const Timeline& timeline, const Device& device,
               const allocator::AllocatorConfig& settings, Replay&& replay) {
  MemoryCurve c;
  std::vector<allocator::NodeMemory> nodes;
  allocator::Process process(g, timeline, device.sm, without_limit(device, settings));
  replay(g, process, [&](const allocator::NodeMemory& m) { nodes.push_back(m); });
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
  add_tensors(c, timeline, process, nodes);
  return c;
}

}  // namespace memory_curve

/// Memory over a prefill and a decode step.
inline MemoryCurve inference_curve(const Graph& g, const Timeline& timeline, const Device& device,
                                   const allocator::AllocatorConfig& settings = {}) {
  return memory_curve::of(g, timeline, device, settings,
                          [](const Graph& graph, allocator::Process& p, auto&& o) { replay_inference(graph, p, o); });
}

/// Memory over a training step in the steady state.
inline MemoryCurve training_curve(const Graph& g, const Timeline& timeline, const Device& device,
                                  const allocator::AllocatorConfig& settings = {}) {
  return memory_curve::of(g, timeline, device, settings,
                          [](const Graph& graph, allocator::Process& p, auto&& o) { replay_training(graph, p, o); });
}

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/memory_curve.hpp>
#endif
