// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>

namespace vlmest::parallel {

/// Gradients of divided weights under DistributedDataParallel. Its forward begins with DTensors made of all of them
/// (torch/distributed/tensor/parallel/ddp.py, _reconstruct_dtensor, which _pre_dp_module_transform makes a pre-hook),
/// and autograd runs first what was made last: their gradients reach the parameters at the end of the backward. Of a
/// micro-batch behind the first, which adds to gradients, they all are there until then. `end(n)` says where the
/// backward of node n ends on this rank; none: the node is another rank's.
template <class End>
std::vector<Storage> waiting_gradients(const Graph& g, End&& end) {
  std::vector<Storage> r;
  std::vector<char> divided(g.tensors.size(), 0);
  for (const auto& s : g.sharded) divided[static_cast<std::size_t>(s.weight)] = 1;
  for (const Phase& p : g.phases) {
    if (p.kind != PhaseKind::backward) continue;
    for (NodeId n = p.first; n < p.last; ++n)
      for (const TensorId out : g.outputs(g.node(n))) {
        const Tensor& t = g.tensor(g.owner(out));
        if (t.role != Role::gradient || t.born >= p.first || !divided[static_cast<std::size_t>(t.of)]) continue;
        if (const NodeId dies = end(n); dies > n + 1)
          r.push_back(
              {none, n + 1, dies, t.scope, requested_bytes(t), Role::workspace, 0, BesideGraph::whole_gradients});
      }
  }
  return r;
}

}  // namespace vlmest::parallel
