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

VLMEST_INLINE Elements shard_of(const Tensor& t, std::int64_t parts) {
  const std::int64_t n = t.storage.value(), rows = t.shape.rank() > 0 ? t.shape[0] : 1;
  const auto up = [&](std::int64_t a) { return (a + parts - 1) / parts; };
  return Elements(rows > 0 && n % rows == 0 ? n / rows * up(rows) : up(n));
}

VLMEST_INLINE Timeline keep(const Graph& g, Timeline t, const Shares& s, bool training) {
  const NodeId step = training ? g.phases.back().first : static_cast<NodeId>(g.nodes.size());
  const auto share = [&](const Storage& x) -> std::int64_t {
    if (x.role == Role::weight) return s.weights;
    if (x.role == Role::gradient) return s.weights == 1 ? s.gradients : 0;
    if (x.role == Role::optimizer_state || (x.born >= step && x.role != Role::buffer && x.role != Role::input))
      return s.optimizer;
    return 1;
  };
  for (std::size_t i = 0; i < t.storages().size(); ++i) {
    const Storage& x = t.storages()[i];
    if (x.tensor != none && is_cast(g, g.tensor(x.tensor))) {
      const Elements n(x.bytes.value() / size_of(Elements(1), g.tensor(x.tensor).dtype).value());
      t.resize(i, size_of(n, *g.kept_dtype));
      continue;
    }
    const std::int64_t parts = share(x);
    if (parts == 1 || x.bytes == Bytes{}) continue;
    const Tensor& tensor = g.tensor(x.tensor);
    const DType type = x.role == Role::weight ? kept_dtype(g, tensor) : tensor.dtype;
    t.resize(i, parts == 0 ? Bytes{} : size_of(shard_of(tensor, parts), type));
  }
  return t;
}

}  // namespace vlmest::parallel
