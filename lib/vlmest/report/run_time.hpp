// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include <vlmest/analysis/streams.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// How long a phase takes beyond its kernels' own time.
struct RunTime {
  Seconds wall{};   ///< eager: the GPU, with the gaps between its kernels, and the host run side by side
  Seconds graph{};  ///< replayed as a CUDA graph, where the host launches once
  Bound bound = Bound::compute;
};

/// Host and device side by side, from a moment when both are idle. The host launches kernel after kernel without
/// waiting, the device runs them in turn; where the host reads a result, it waits for all that was launched before.
struct Pace {
  Streams streams;     ///< the host's has launched, and that of kernels has run, what was given so far
  Seconds waited{};    ///< by how much the device's time grew where the host set the pace
  Seconds graph{};     ///< the kernels one after the other
  double kernels = 1;  ///< how long they take, in parts of their estimate

  /// Kernels of one node, of which each takes the host `launch`. Those that wait for nothing but the one before follow
  /// it no faster in a stream than in a graph.
  void run(const Work& w, Seconds launch, const Device& d) {
    const auto count = static_cast<double>(w.kernels);
    const Seconds busy = w.time * kernels + d.graph_gap * count, before = streams.end(Stream::compute);
    graph += busy;
    run_host(launch * count);
    if (streams.run_launched(Stream::compute, busy, busy * (1 / count)))
      waited += Seconds{streams.end(Stream::compute).value - before.value};
  }
  void run_host(Seconds t) { streams.run(Stream::host, t); }
  void synchronise() { streams.wait(Stream::host, Stream::compute); }
  /// As if all since `before` had run n times.
  void repeat(const Pace& before, std::int64_t n) {
    streams.repeat(before.streams, n);
    for (Seconds Pace::*t : {&Pace::waited, &Pace::graph})
      this->*t += Seconds{(this->*t).value - (before.*t).value} * static_cast<double>(n - 1);
  }
  Seconds wall() const { return streams.wall(); }
  /// Of what was run, which is `all`.
  RunTime result(const Work& all) const {
    const bool launch = waited.value > wall().value / 2;
    return {.wall = wall(), .graph = graph, .bound = launch ? Bound::launch : bound(all)};
  }
};

/// Between which times an eager run ends, as hosts and kernels differ (TimeSpread).
struct WallRange {
  Seconds low{}, high{};
};

/// `run(pace, device)` is what is run on an idle host and device.
template <class Run>
WallRange wall_range(const Device& d, const Run& run) {
  Device other = d;
  const auto at = [&](double Spread::*end) {
    Pace p;
    p.kernels = d.spread.kernels.*end;
    put_host_at(other, d, end);
    run(p, other);
    return p.wall();
  };
  return {at(&Spread::low), at(&Spread::high)};
}

/// The nodes [first, last).
void run_nodes(Pace& p, const Graph& g, NodeId first, NodeId last, std::span<const Work> of_ops, Seconds launch,
               const Device& d);

/// A phase of inference. `plans`: shapes of cuDNN's attention that the process has not run before. torch keeps a plan a
/// shape (aten/src/ATen/native/cudnn/MHA.cpp, MHAGraphCache), and builds a new one on the host before it launches.
inline void run_phase(Pace& pace, const Graph& g, const Phase& p, std::span<const Work> of_ops, std::int64_t plans,
                      const Device& d) {
  pace.run_host(d.attention_plan * static_cast<double>(plans));
  run_nodes(pace, g, p.first, p.last, of_ops, d.launch, d);
}
inline RunTime run_time(const Graph& g, const Phase& p, const Work& w, std::span<const Work> of_ops, std::int64_t plans,
                        const Device& d) {
  Pace pace;
  run_phase(pace, g, p, of_ops, plans, d);
  return pace.result(w);
}

/// Shapes of cuDNN's attention in a decode step that no step before had: those over the cache, which holds `kv_len`
/// tokens with the new one. Windows and what encoders made keep theirs.
std::int64_t new_attention_plans(const Graph& g, const Phase& decode, std::int64_t kv_len);

/// What the host has to do for checkpointed layers, in a forward and its backward.
struct CheckpointedWork {
  std::int64_t layers = 0;
  std::int64_t saved = 0;  ///< tensors that the layers save, each through hooks in Python
};

CheckpointedWork checkpointed_work(const Graph& g, const Phase& backward);

inline Seconds host_time(const CheckpointedWork& c, const CheckpointCost& cost) {
  return cost.layer * static_cast<double>(c.layers) + cost.tensor * static_cast<double>(c.saved);
}

/// A forward with its work `w`, of whose layers `c` are checkpointed: their Python goes with their launches.
inline void run_forward(Pace& p, const Graph& g, const Phase& phase, const Work& w, const CheckpointedWork& c,
                        std::span<const Work> of_ops, const Device& d) {
  const Seconds python = host_time(c, d.checkpoint_forward) * (1 / std::max(1.0, static_cast<double>(w.kernels)));
  run_nodes(p, g, phase.first, phase.last, of_ops, d.forward_launch + python, d);
}
/// A backward. The second forward of a checkpointed layer is the same Python as the first, and autograd records it too.
void run_backward(Pace& p, const Graph& g, const Phase& phase, std::span<const Work> of_ops, const Device& d);
/// An optimizer's step over so many parameters. Half of its Python goes through them before the first launch
/// (Optimizer._init_group, _group_tensors_by_device_and_dtype), the rest makes lists between the launches.
inline void run_step(Pace& p, const Graph& g, const Phase& phase, const Work& w, std::int64_t parameters,
                     std::span<const Work> of_ops, const Device& d) {
  const Seconds half = d.optimizer_parameter * (static_cast<double>(parameters) / 2);
  p.run_host(half);
  const Seconds between = half * (1 / std::max(1.0, static_cast<double>(w.kernels)));
  run_nodes(p, g, phase.first, phase.last, of_ops, d.launch + between, d);
}

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/run_time.hpp>
#endif
