// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/report/run_time.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE void run_nodes(Pace& p, const Graph& g, NodeId first, NodeId last, std::span<const Work> of_ops,
                             Seconds launch, const Device& d) {
  for (NodeId n = first; n < last; ++n) {
    const Node& node = g.node(n);
    const Work& w = of_ops[static_cast<std::size_t>(node.op)];
    if (w.kernels > 0)
      p.run(w, launch, d);
    else if (std::holds_alternative<HostSync>(g.op(node)))
      p.synchronise();
  }
}

VLMEST_INLINE std::int64_t new_attention_plans(const Graph& g, const Phase& decode, std::int64_t kv_len) {
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

VLMEST_INLINE CheckpointedWork checkpointed_work(const Graph& g, const Phase& backward) {
  CheckpointedWork r;
  for (const SecondForward& s : g.second_forwards) {
    if (s.first < backward.first || s.first >= backward.last) continue;
    ++r.layers;
    r.saved += s.saved;
  }
  return r;
}

VLMEST_INLINE void run_backward(Pace& p, const Graph& g, const Phase& phase, std::span<const Work> of_ops,
                                const Device& d) {
  NodeId n = phase.first;
  for (const SecondForward& s : g.second_forwards) {
    if (s.first < phase.first || s.first >= phase.last) continue;
    run_nodes(p, g, n, s.first, of_ops, d.backward_launch, d);
    p.run_host(host_time({1, s.saved}, d.checkpoint_backward));
    run_nodes(p, g, s.first, s.last, of_ops, d.forward_launch, d);
    n = s.last;
  }
  run_nodes(p, g, n, phase.last, of_ops, d.backward_launch, d);
}

}  // namespace vlmest
