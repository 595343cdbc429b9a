// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/parallel/states.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE WeightBytes weight_bytes(const Graph& g) {
  WeightBytes r;
  std::vector<Bytes> of_scope(g.scopes.size());
  for (const Tensor& t : g.loaded()) {
    if (t.role != Role::weight || t.alias_of != none) continue;
    const Bytes bytes = requested_bytes(t);
    r.all += bytes;
    of_scope[static_cast<std::size_t>(t.scope)] += bytes;
  }
  r.module = *std::max_element(of_scope.begin(), of_scope.end());
  return r;
}

VLMEST_INLINE Timeline keep(const Graph& g, Timeline t, const Shares& s, bool training) {
  const NodeId step = training ? g.phases.back().first : static_cast<NodeId>(g.nodes.size());
  const auto share = [&](const Storage& x) -> std::int64_t {
    if (x.role == Role::weight) return s.weights;
    if (x.role == Role::gradient) return s.gradients;
    if (x.role == Role::optimizer_state || (x.born >= step && x.role != Role::buffer && x.role != Role::input))
      return s.optimizer;
    return 1;
  };
  for (std::size_t i = 0; i < t.storages().size(); ++i) {
    const Storage& x = t.storages()[i];
    const std::int64_t parts = share(x);
    if (parts == 1) continue;
    const Tensor& tensor = g.tensor(x.tensor);
    const std::int64_t n = tensor.storage.value();
    const std::uint8_t stream = x.role == Role::gradient && s.weights != 1 ? reducing_stream : std::uint8_t{0};
    t.resize(i, size_of(Elements(parts == 0 ? 0 : (n + parts - 1) / parts), tensor.dtype), stream);
  }
  return t;
}

}  // namespace vlmest::parallel
