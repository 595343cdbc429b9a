// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// When storages are freed: for every node, those that go between the node before it and itself. Allocations need no
/// list of their own: owners are born in the order of their ids.
class Frees {
 public:
  explicit Frees(const Graph& g) { assign(g); }

  void assign(const Graph& g) {
    first_.assign(g.nodes.size() + 2, 0);
    for (const auto& t : g.tensors)
      if (t.alias_of == none && t.dies != none) ++first_[static_cast<std::size_t>(t.dies) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    tensors_.resize(static_cast<std::size_t>(first_.back()));
    next_.assign(first_.begin(), first_.end());
    for (std::size_t i = 0; i < g.tensors.size(); ++i)
      if (const auto& t = g.tensors[i]; t.alias_of == none && t.dies != none)
        tensors_[static_cast<std::size_t>(next_[static_cast<std::size_t>(t.dies)]++)] = static_cast<TensorId>(i);
  }

  /// Storages that die at node n (before it allocates), by id.
  std::span<const TensorId> at(NodeId n) const {
    const auto i = static_cast<std::size_t>(n);
    return {tensors_.data() + first_[i], static_cast<std::size_t>(first_[i + 1] - first_[i])};
  }

 private:
  std::vector<std::int32_t> first_, next_;
  std::vector<TensorId> tensors_;
};

}  // namespace vlmest
