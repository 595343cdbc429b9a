// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// Nodes [first, last) that run `times` times.
struct Repeated {
  NodeId first = 0;
  NodeId last = 0;
  std::int64_t times = 1;
};

/// The stretches of a graph, one for each of its phases. A graph of a training step of several micro-batches holds
/// forward and backward twice: the first, and one that stands for all further ones.
inline std::vector<Repeated> stretches(const Graph& g, std::int64_t micro_batches) {
  std::vector<Repeated> r;
  for (const Phase& p : g.phases) r.push_back({p.first, p.last, 1});
  if (micro_batches > 1 && r.size() > 3) r[2].times = r[3].times = micro_batches - 1;
  return r;
}

}  // namespace vlmest
