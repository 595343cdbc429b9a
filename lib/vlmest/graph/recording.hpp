// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// How far a graph has grown.
struct GraphMark {
  NodeId nodes = 0;
  TensorId tensors = 0;
  std::int32_t edges = 0, scratch = 0;
};
inline GraphMark mark(const Graph& g) {
  return {static_cast<NodeId>(g.nodes.size()), static_cast<TensorId>(g.tensors.size()),
          static_cast<std::int32_t>(g.edges.size()), static_cast<std::int32_t>(g.scratch.size())};
}
inline void truncate(Graph& g, const GraphMark& m) {
  g.nodes.resize(static_cast<std::size_t>(m.nodes));
  g.tensors.resize(static_cast<std::size_t>(m.tensors));
  g.edges.resize(static_cast<std::size_t>(m.edges));
  g.scratch.resize(static_cast<std::size_t>(m.scratch));
  while (!g.layers.empty() && g.layers.back().last > m.nodes) g.layers.pop_back();
}

/// A hold on a storage that ended before node `at`.
struct Release {
  TensorId owner = none;
  NodeId at = 0;
};

/// Nodes and the tensors that they make, taken from a graph to be put in again with other ids.
struct Recording {
  GraphMark from;
  std::vector<Node> nodes;
  std::vector<TensorId> edges;
  std::vector<Bytes> scratch;
  std::vector<Tensor> tensors;
};

/// All of the graph since `from`.
inline Recording record(const Graph& g, const GraphMark& from) {
  return {from,
          {g.nodes.begin() + from.nodes, g.nodes.end()},
          {g.edges.begin() + from.edges, g.edges.end()},
          {g.scratch.begin() + from.scratch, g.scratch.end()},
          {g.tensors.begin() + from.tensors, g.tensors.end()}};
}

/// Leaves out the views that ops only read (they read the storage), but for those in `keep`, whose ids follow.
inline void leave_out_views(Recording& r, std::span<TensorId* const> keep) {
  const TensorId first = r.from.tensors;
  const auto index = [&](TensorId id) { return static_cast<std::size_t>(id - first); };
  const auto storage = [&](TensorId id) {
    return id >= first && r.tensors[index(id)].alias_of != none ? r.tensors[index(id)].alias_of : id;
  };
  std::vector<bool> used(r.tensors.size());
  for (std::size_t i = 0; i < used.size(); ++i) used[i] = r.tensors[i].alias_of == none;
  const auto use = [&](TensorId id) {
    if (id >= first) used[index(id)] = true;
  };
  for (const Node& n : r.nodes) {
    const std::int32_t inputs = n.first_edge - r.from.edges;
    for (std::int32_t i = inputs; i < inputs + n.inputs; ++i) {
      TensorId& e = r.edges[static_cast<std::size_t>(i)];
      e = storage(e);
    }
    for (std::int32_t i = inputs + n.inputs; i < inputs + n.inputs + n.outputs; ++i)
      use(r.edges[static_cast<std::size_t>(i)]);
  }
  for (const TensorId* id : keep) use(*id);
  std::vector<TensorId> now(r.tensors.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < r.tensors.size(); ++i) {
    now[i] = first + static_cast<TensorId>(count);
    if (used[i]) r.tensors[count++] = r.tensors[i];
  }
  r.tensors.resize(count);
  const auto follow = [&](TensorId& id) {
    if (id >= first) id = now[index(id)];
  };
  for (Tensor& t : r.tensors) follow(t.alias_of);
  for (TensorId& e : r.edges) follow(e);
  for (TensorId* id : keep) follow(*id);
}

/// Puts a recording at the end of a graph. `tensor(id)` says what an id below the recording's own stands for here;
/// `scope(id)` the same of scopes.
template <class MapTensor, class MapScope>
void append(Graph& g, const Recording& r, MapTensor&& tensor, MapScope scope) {
  check_room(g, r.tensors.size(), r.nodes.size());
  const GraphMark at = mark(g);
  const NodeId nodes = at.nodes - r.from.nodes;
  const TensorId first = r.from.tensors, tensors = at.tensors - first;
  const auto map = [&, first, tensors](TensorId id) { return id >= first ? id + tensors : tensor(id); };
  // All at once, then what differs.
  const auto added = [](auto& to, const auto& from) {
    const std::size_t here = to.size();
    to.insert(to.end(), from.begin(), from.end());
    return std::span(to).subspan(here);
  };
  for (Tensor& t : added(g.tensors, r.tensors)) {
    t.born += nodes;
    t.scope = scope(t.scope);
    if (t.dies != none) t.dies += nodes;
    if (t.alias_of != none) t.alias_of = g.owner(map(t.alias_of));
  }
  for (Node& n : added(g.nodes, r.nodes)) {
    n.first_edge += at.edges - r.from.edges;
    n.first_scratch += at.scratch - r.from.scratch;
    n.scope = scope(n.scope);
  }
  for (TensorId& id : added(g.edges, r.edges)) id = map(id);
  added(g.scratch, r.scratch);
}

}  // namespace vlmest
