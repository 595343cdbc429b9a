// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

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

/// Work whose kernels the host launches in `host`.
struct LaunchedWork {
  Work work;
  Seconds host{};
};

/// Phases in turn, from a moment when the device is idle to the one when it is done. The host launches without waiting:
/// up to some phase it sets the pace, from there on the device has kernels in store.
inline RunTime run_time(std::span<const LaunchedWork> phases, const Device& d) {
  // Kernels that wait for nothing but the one before follow it no faster in a stream than in a graph.
  const auto on_device = [&d](const Work& w) { return w.time + d.graph_gap * static_cast<double>(w.kernels); };
  Work all;
  Seconds graph{};
  for (const auto& p : phases) {
    all += p.work;
    graph += on_device(p.work);
  }
  Seconds wall = graph, paced{}, host{}, done{};
  for (const auto& p : phases) {
    host += p.host;
    done += on_device(p.work);
    const Seconds t{host.value + (graph.value - done.value)};
    if (t > wall) wall = t, paced = host;
  }
  return {.wall = wall, .graph = graph, .bound = paced.value > wall.value / 2 ? Bound::launch : bound(all)};
}

/// `plans`: shapes of cuDNN's attention that the process has not run before. torch keeps a plan a shape
/// (aten/src/ATen/native/cudnn/MHA.cpp, MHAGraphCache), and builds a new one on the host before it launches.
inline RunTime run_time(const Work& w, std::int64_t plans, const Device& d) {
  const Seconds host = d.launch * static_cast<double>(w.kernels) + d.attention_plan * static_cast<double>(plans);
  const LaunchedWork phase{w, host};
  return run_time(std::span(&phase, 1), d);
}

/// Shapes of cuDNN's attention in a decode step that no step before had: those over the cache, which holds `kv_len`
/// tokens with the new one. Windows and what encoders made keep theirs.
inline std::int64_t new_attention_plans(const Graph& g, const Phase& decode, std::int64_t kv_len) {
  std::vector<const Attention*> seen;
  for (NodeId n = decode.first; n < decode.last; ++n) {
    const auto* a = std::get_if<Attention>(&g.op(g.node(n)));
    if (!a || a->backend != AttentionBackend::cudnn || a->kv_len != kv_len) continue;
    const auto same = [a](const Attention* b) {
      return a->batch == b->batch && a->heads == b->heads && a->kv_heads == b->kv_heads && a->kv_len == b->kv_len &&
             a->head_dim == b->head_dim && a->v_dim == b->v_dim && a->mask == b->mask;
    };
    if (std::none_of(seen.begin(), seen.end(), same)) seen.push_back(a);
  }
  return static_cast<std::int64_t>(seen.size());
}

/// What the host has to do for checkpointed layers, in a forward and its backward.
struct CheckpointedWork {
  std::int64_t layers = 0;
  std::int64_t saved = 0;    ///< tensors that the layers save, each through hooks in Python
  std::int64_t kernels = 0;  ///< of the second forwards
};

inline CheckpointedWork checkpointed_work(const Graph& g, const Phase& backward, std::span<const Work> of_ops) {
  CheckpointedWork r;
  for (const SecondForward& s : g.second_forwards) {
    if (s.first < backward.first || s.first >= backward.last) continue;
    ++r.layers;
    r.saved += s.saved;
    for (NodeId n = s.first; n < s.last; ++n) r.kernels += of_ops[static_cast<std::size_t>(g.node(n).op)].kernels;
  }
  return r;
}

inline Seconds host_time(const CheckpointedWork& c, const CheckpointCost& cost) {
  return cost.layer * static_cast<double>(c.layers) + cost.tensor * static_cast<double>(c.saved);
}

inline LaunchedWork launched_forward(const Work& w, const CheckpointedWork& c, const Device& d) {
  return {w, d.forward_launch * static_cast<double>(w.kernels) + host_time(c, d.checkpoint_forward)};
}
/// A second forward is the same Python as the first, and autograd records it too.
inline LaunchedWork launched_backward(const Work& w, const CheckpointedWork& c, const Device& d) {
  return {w, d.backward_launch * static_cast<double>(w.kernels - c.kernels) +
                 d.forward_launch * static_cast<double>(c.kernels) + host_time(c, d.checkpoint_backward)};
}

}  // namespace vlmest
