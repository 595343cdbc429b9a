// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/run_time.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::parallel {

namespace pipeline {

/// The layer of the language model that each scope belongs to; none elsewhere.
inline std::vector<std::int32_t> layers_of_scopes(const Graph& g) {
  std::vector<std::int32_t> r(g.scopes.size(), none);
  for (std::size_t s = 1; s < r.size(); ++s) {
    const Scope& e = g.scopes[s];
    const std::int32_t above = r[static_cast<std::size_t>(e.parent)];
    r[s] = above != none ? above : e.part == Part::language ? e.index : none;
  }
  return r;
}

inline bool is_before_layers(Part p) { return p == Part::vision || p == Part::audio || p == Part::projector; }

/// First and last use of a storage by the nodes of one stage; none where they do not use it.
struct Use {
  NodeId first = none, last = none;
};

inline std::vector<Use> uses(const Graph& g, const Stages& stages, int stage) {
  std::vector<Use> r(g.tensors.size());
  for (NodeId n = 0; n < static_cast<NodeId>(g.nodes.size()); ++n) {
    if (stages.of_node[static_cast<std::size_t>(n)] != stage) continue;
    const auto use = [&](TensorId t) {
      Use& u = r[static_cast<std::size_t>(g.owner(t))];
      if (u.first == none) u.first = n;
      u.last = n;
    };
    for (const TensorId t : g.inputs(g.node(n))) use(t);
    for (const TensorId t : g.outputs(g.node(n))) use(t);
  }
  return r;
}

}  // namespace pipeline

VLMEST_INLINE Stages cut(const Graph& g, const Layout& layout) {
  const std::vector<std::int32_t> layer = pipeline::layers_of_scopes(g);
  const std::int64_t layers = *std::max_element(layer.begin(), layer.end()) + 1;
  Stages r{
      .count = layout.pp, .of_scope = std::vector<int>(g.scopes.size(), -1), .of_node = {}, .layers = layout.stages};
  const std::int64_t parts = std::int64_t{1} * layout.pp * layout.schedule.chunks;
  if (layers < parts)
    throw Error("layout.mesh",
                "pp=" + std::to_string(layout.pp) + ": the language model has " + std::to_string(layers) +
                    " layers for " + std::to_string(parts) + " stages",
                "give fewer stages");
  if (r.layers.empty()) {
    for (int s = 0; s < layout.pp; ++s) r.layers.push_back(layers / layout.pp + (s < layers % layout.pp ? 1 : 0));
  } else if (static_cast<int>(r.layers.size()) != layout.pp ||
             std::accumulate(r.layers.begin(), r.layers.end(), std::int64_t{0}) != layers ||
             std::any_of(r.layers.begin(), r.layers.end(), [](std::int64_t n) { return n < 1; })) {
    throw Error(
        "layout.stages",
        "is no division of " + std::to_string(layers) + " layers among " + std::to_string(layout.pp) + " stages",
        "give as many numbers as stages, which add up to the layers");
  }
  std::vector<int> of_layer;
  for (int s = 0; s < layout.pp; ++s)
    of_layer.insert(of_layer.end(), static_cast<std::size_t>(r.layers[static_cast<std::size_t>(s)]), s);
  if (layout.schedule.chunks > 1) {  // chunks go round the ranks
    for (std::int64_t i = 0; i < layers; ++i)
      of_layer[static_cast<std::size_t>(i)] = static_cast<int>(i * parts / layers % layout.pp);
    r.layers.assign(static_cast<std::size_t>(layout.pp), 0);
    for (const int s : of_layer) ++r.layers[static_cast<std::size_t>(s)];
  }
  std::vector<char> embeds(g.scopes.size(), 0);
  for (const TensorId t : g.embeddings) embeds[static_cast<std::size_t>(g.tensor(t).scope)] = 1;
  for (std::size_t s = 1; s < g.scopes.size(); ++s) {
    if (layer[s] != none)
      r.of_scope[s] = of_layer[static_cast<std::size_t>(layer[s])];
    else if (pipeline::is_before_layers(g.scopes[s].part) || embeds[s])
      r.of_scope[s] = 0;
  }
  r.of_node.resize(g.nodes.size());
  for (const Phase& p : g.phases) {
    const bool backward = p.kind == PhaseKind::backward;
    int at = backward ? layout.pp - 1 : 0;
    for (NodeId n = p.first; n < p.last; ++n) {
      const int own = r.of_scope[static_cast<std::size_t>(g.node(n).scope)];
      if (own != -1) at = own;
      r.of_node[static_cast<std::size_t>(n)] = at;
    }
    // Behind the last layer of a forward comes what the last stage has, whatever ran in between.
    if (backward) continue;
    for (NodeId n = p.last; n-- > p.first && layer[static_cast<std::size_t>(g.node(n).scope)] == none;)
      r.of_node[static_cast<std::size_t>(n)] = layout.pp - 1;
  }
  return r;
}

VLMEST_INLINE Timeline stage_timeline(const Graph& g, const Timeline& whole, const Stages& stages, int stage,
                                      double held) {
  Timeline r = whole;
  const std::vector<pipeline::Use> uses = pipeline::uses(g, stages, stage);
  const Phase &forward = g.phases[g.phases.size() - 3], &step = g.phases.back();
  const auto stage_of = [&](ScopeId s) {
    const int own = stages.of_scope[static_cast<std::size_t>(s)];
    return own != -1 ? own : stages.count - 1;  // the last norm and the head
  };
  std::vector<Storage> added;
  for (std::size_t i = 0; i < whole.storages().size(); ++i) {
    const Storage& s = whole.storages()[i];
    const Tensor& t = g.tensor(s.tensor);
    const pipeline::Use& used = uses[static_cast<std::size_t>(s.tensor)];
    const bool of_weight = s.role == Role::weight || s.role == Role::gradient || s.role == Role::optimizer_state ||
                           (s.born >= step.first && t.of != none);
    if (of_weight) {
      const TensorId weight = t.of == none ? s.tensor : t.of;
      const int own = stage_of(g.tensor(weight).scope);
      // What another stage reads of a weight is a tied one: it has a copy, with a gradient and states.
      const bool copy = uses[static_cast<std::size_t>(weight)].first != none &&
                        uses[static_cast<std::size_t>(weight)].first < step.first;
      if (own != stage && !copy) r.resize(i, Bytes{});
      continue;
    }
    if (s.role == Role::buffer || s.role == Role::input) {
      if (used.first == none) r.resize(i, Bytes{});
      continue;
    }
    const bool here = s.born < step.first && stages.of_node[static_cast<std::size_t>(s.born)] == stage;
    if (s.born >= step.first) continue;
    if (here && (s.dies == none || s.dies >= step.first || s.dies > used.last + 1)) {
      // Held for another stage's sake: here it goes when it is sent.
      const NodeId dies = std::max(s.born, used.last) + 1;
      if (s.dies == none || dies < s.dies) {
        r.resize(i, Bytes{});
        added.push_back({s.tensor, s.born, dies, s.scope, s.bytes, s.role});
      }
      continue;
    }
    if (here) continue;
    r.resize(i, Bytes{});
    if (used.first == none) continue;
    added.push_back({s.tensor, used.first, used.last + 1, s.scope, s.bytes, s.role});
  }
  r.add(added);
  // Saved by micro-batches before: whole ones, and of the last of them a part.
  const auto more = static_cast<std::int64_t>(std::floor(held));
  std::vector<Storage> saved;
  for (const Storage& s : r.storages()) {
    if (s.bytes == Bytes{} || !left_by(s, forward)) continue;
    const Storage kept{s.tensor, forward.first, step.first, s.scope, s.bytes, s.role};
    for (std::int64_t k = 0; k < more; ++k) saved.push_back(kept);
    Storage part = kept;
    part.bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(s.bytes.value()) * (held - std::floor(held))));
    if (part.bytes > Bytes{}) saved.push_back(part);
  }
  r.add(saved);
  return r;
}

VLMEST_INLINE Graph stage_graph(const Graph& g, const Stages& stages, int stage) {
  Graph r = g;
  for (std::size_t n = 0; n < r.nodes.size(); ++n)
    if (stages.of_node[n] != stage && r.nodes[n].scratch > 0 && static_cast<NodeId>(n) < g.phases.back().first)
      r.nodes[n].scratch = 0;
  return r;
}

VLMEST_INLINE std::vector<StageTime> stage_times(const Graph& g, const Stages& stages, std::span<const Work> of_ops,
                                                 const Device& d) {
  std::vector<StageTime> r(static_cast<std::size_t>(stages.count));
  const Phase *forward = g.phases.data() + (g.phases.size() - 3), *backward = forward + 1, *first = &g.phases[1];
  std::vector<char> is_gradient(g.nodes.size(), 0);
  for (const Tensor& t : g.tensors)
    if (t.role == Role::gradient && t.alias_of == none && t.born >= first->first && t.born < first->last)
      is_gradient[static_cast<std::size_t>(t.born)] = 1;
  for (int s = 0; s < stages.count; ++s) {
    const auto run = [&](const Phase& p, Seconds launch, auto&& wanted) {
      Pace pace;
      for (NodeId n = p.first; n < p.last; ++n)
        if (stages.of_node[static_cast<std::size_t>(n)] == s && wanted(n))
          run_nodes(pace, g, n, n + 1, of_ops, launch, d);
      return pace.wall();
    };
    const auto all = [](NodeId) { return true; };
    StageTime& t = r[static_cast<std::size_t>(s)];
    t.forward = run(*forward, d.forward_launch, all);
    t.backward = run(*backward, d.backward_launch, all);
    t.weights = run(*first, d.backward_launch, [&](NodeId n) { return is_gradient[static_cast<std::size_t>(n)] != 0; });
    t.weights = std::min(t.weights, t.backward);
  }
  return r;
}

VLMEST_INLINE Bytes sent_between(const Graph& g, const Stages& stages) {
  const Phase& forward = g.phases[g.phases.size() - 3];
  Bytes most{};
  for (NodeId n = forward.first + 1; n < forward.last; ++n) {
    const int here = stages.of_node[static_cast<std::size_t>(n)],
              before = stages.of_node[static_cast<std::size_t>(n - 1)];
    if (here == before || here == 0) continue;
    for (const TensorId t : g.inputs(g.node(n))) {
      const Tensor& x = g.tensor(g.owner(t));
      if (x.role == Role::activation && x.born >= forward.first && x.born < n &&
          stages.of_node[static_cast<std::size_t>(x.born)] == before)
        most = std::max(most, requested_bytes(x));
    }
  }
  return most;
}

}  // namespace vlmest::parallel
