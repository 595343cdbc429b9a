// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/pipeline.hpp>

/// Weights that two stages of a pipeline use: tied in the whole model, copies of each other in its stages.
namespace vlmest::parallel {

/// The gradient of a weight that two stages use, tied in the whole model, is the sum of both stages' parts. Apart, each
/// stage has its own part for the whole.
struct TiedSum {
  TensorId sum = none, part = none;  ///< the rank's own part; none where the rank makes none
};

/// The sums over what this rank and others make, in the backwards.
inline std::vector<TiedSum> tied_sums(const Graph& g, const Stages& stages, const std::vector<Crossing>& crossings,
                                      int rank) {
  std::vector<TiedSum> r;
  for (const Phase& p : g.phases) {
    if (p.kind != PhaseKind::backward) continue;
    for (NodeId n = p.first; n < p.last; ++n) {
      TiedSum found;
      bool elsewhere = false;
      const int at = stages.rank(stages.stage(n));
      for (const TensorId t : g.inputs(g.node(n))) {
        const TensorId owner = g.owner(t);
        const Tensor& x = g.tensor(owner);
        if (x.role != Role::activation || x.born < p.first || x.born >= n ||
            crossings[static_cast<std::size_t>(owner)] != Crossing::none)
          continue;
        const int from = stages.rank(stages.stage(x.born));
        elsewhere = elsewhere || from != at;
        if (from == rank) found.part = owner;
      }
      if (!elsewhere || g.outputs(g.node(n)).empty()) continue;
      found.sum = g.owner(g.outputs(g.node(n)).front());
      r.push_back(found);
    }
  }
  return r;
}

/// For each tensor the first of the sums that names it as `which`; none where none does.
inline std::vector<std::int32_t> first_of(const std::vector<TiedSum>& sums, TensorId TiedSum::*which,
                                          std::size_t tensors) {
  std::vector<std::int32_t> r(tensors, none);
  for (std::size_t i = sums.size(); i-- > 0;)
    if (const TensorId t = sums[i].*which; t != none) r[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(i);
  return r;
}

}  // namespace vlmest::parallel
