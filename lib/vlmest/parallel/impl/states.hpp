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

/// Whether a tensor of the graph is an input that a caller has in another type.
inline bool is_cast(const Graph& g, const Tensor& t) {
  return g.kept_dtype && t.role == Role::input && is_floating(t.dtype) && t.dtype != *g.kept_dtype;
}

VLMEST_INLINE std::vector<Storage> cast_inputs(const Graph& g, const Timeline& t) {
  std::vector<Storage> inputs, r;
  for (const Storage& s : t.storages())
    if (s.tensor != none && s.bytes > Bytes{} && is_cast(g, g.tensor(s.tensor))) inputs.push_back(s);
  std::vector<NodeId> last(inputs.empty() ? 0 : g.tensors.size());  // of a pass, the last node that uses a tensor
  for (std::size_t i = 0; i + 2 < g.phases.size() && !inputs.empty(); i += 2) {
    const Phase &forward = g.phases[i], &backward = g.phases[i + 1];
    for (NodeId n = forward.first; n < backward.last; ++n)
      for (const TensorId used : g.inputs(g.node(n))) last[static_cast<std::size_t>(g.owner(used))] = n;
    for (const Storage& s : inputs)
      r.push_back({none, forward.first, std::max(forward.last, last[static_cast<std::size_t>(s.tensor)] + 1), s.scope,
                   requested_bytes(g.tensor(s.tensor)), Role::workspace, 0, BesideGraph::cast_input});
  }
  return r;
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
  if (g.kept_dtype) t.add(cast_inputs(g, t));
  return t;
}

}  // namespace vlmest::parallel
