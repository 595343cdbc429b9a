// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>

#include <vlmest/parallel/pipeline.hpp>
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

/// How many lists of modules layers of the language model are in.
inline std::size_t layer_lists(const Graph& g, const std::vector<std::int32_t>& layer) {
  std::vector<ScopeId> lists;
  for (std::size_t s = 1; s < g.scopes.size(); ++s) {
    const ScopeId parent = g.scopes[s].parent;
    if (layer[s] == none || layer[static_cast<std::size_t>(parent)] != none) continue;
    if (std::find(lists.begin(), lists.end(), parent) == lists.end()) lists.push_back(parent);
  }
  return lists.size();
}

inline bool is_before_layers(Part p) { return p == Part::vision || p == Part::audio || p == Part::projector; }

}  // namespace pipeline

VLMEST_INLINE Stages cut(const Graph& g, const Layout& layout) {
  const std::vector<std::int32_t> layer = pipeline::layers_of_scopes(g);
  if (pipeline::layer_lists(g, layer) > 1)
    throw Error("layout.mesh",
                "pp=" + std::to_string(layout.pp) + ": a pipeline of an encoder and a decoder is not modelled",
                "leave it out, or give dp=N");
  const std::int64_t layers = *std::max_element(layer.begin(), layer.end()) + 1;
  Stages r{.ranks = layout.pp,
           .chunks = layout.schedule.chunks,
           .of_scope = std::vector<int>(g.scopes.size(), -1),
           .of_node = std::vector<int>(g.nodes.size(), 0),
           .in_layer = std::vector<char>(g.scopes.size(), 0)};
  const std::int64_t parts = r.count();
  if (layers < parts)
    throw Error("layout.mesh",
                "pp=" + std::to_string(layout.pp) + ": the language model has " + std::to_string(layers) +
                    " layers for " + std::to_string(parts) + " stages",
                "give fewer stages");
  std::vector<int> of_layer;
  if (r.chunks > 1) {
    for (std::int64_t i = 0; i < layers; ++i) of_layer.push_back(static_cast<int>(i * parts / layers));
  } else {
    std::vector<std::int64_t> sizes = layout.stages;
    if (sizes.empty())
      for (int s = 0; s < layout.pp; ++s) sizes.push_back(layers / layout.pp + (s < layers % layout.pp ? 1 : 0));
    if (static_cast<int>(sizes.size()) != layout.pp ||
        std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != layers ||
        std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n < 1; }))
      throw Error(
          "layout.stages",
          "is no division of " + std::to_string(layers) + " layers among " + std::to_string(layout.pp) + " stages",
          "give as many numbers as stages, which add up to the layers");
    for (int s = 0; s < layout.pp; ++s)
      of_layer.insert(of_layer.end(), static_cast<std::size_t>(sizes[static_cast<std::size_t>(s)]), s);
  }
  std::vector<char> embeds(g.scopes.size(), 0);
  for (const TensorId t : g.embeddings) embeds[static_cast<std::size_t>(g.tensor(t).scope)] = 1;
  for (std::size_t s = 1; s < g.scopes.size(); ++s) {
    r.in_layer[s] = layer[s] != none;
    if (layer[s] != none)
      r.of_scope[s] = of_layer[static_cast<std::size_t>(layer[s])];
    else if (pipeline::is_before_layers(g.scopes[s].part) || embeds[s])
      r.of_scope[s] = 0;
  }
  for (const Phase& p : g.phases) {
    const bool backward = p.kind == PhaseKind::backward;
    int at = backward ? r.count() - 1 : 0;
    for (NodeId n = p.first; n < p.last; ++n) {
      const int own = r.of_scope[static_cast<std::size_t>(g.node(n).scope)];
      if (own != -1) at = own;
      r.of_node[static_cast<std::size_t>(n)] = at;
    }
    // Behind the last layer of a forward comes what the last stage has, whatever ran in between.
    if (backward) continue;
    for (NodeId n = p.last; n-- > p.first && layer[static_cast<std::size_t>(g.node(n).scope)] == none;)
      r.of_node[static_cast<std::size_t>(n)] = r.count() - 1;
  }
  return r;
}

VLMEST_INLINE std::vector<std::int64_t> balanced_layers(const Graph& g, int stages, std::span<const Work> of_ops) {
  const std::vector<std::int32_t> layer = pipeline::layers_of_scopes(g);
  const std::int64_t layers = *std::max_element(layer.begin(), layer.end()) + 1;
  if (layers < stages) return {};
  const Stages halves = cut(g, {.pp = 2});
  Seconds in_layers;
  std::vector<Seconds> of_stage(static_cast<std::size_t>(stages));
  for (const Phase* p = g.phases.data() + (g.phases.size() - 3); p < g.phases.data() + (g.phases.size() - 1); ++p)
    for (NodeId n = p->first; n < p->last; ++n) {
      const Seconds time = of_ops[static_cast<std::size_t>(g.node(n).op)].time;
      if (halves.in_layer[static_cast<std::size_t>(g.node(n).scope)])
        in_layers += time;
      else
        (halves.stage(n) == 0 ? of_stage.front() : of_stage.back()) += time;
    }
  const Seconds each = in_layers * (1.0 / static_cast<double>(layers));
  std::vector<std::int64_t> r(of_stage.size(), 1);
  for (Seconds& s : of_stage) s += each;
  for (std::int64_t left = layers - stages; left > 0; --left) {
    const auto least = std::min_element(of_stage.begin(), of_stage.end(),
                                        [](const Seconds& a, const Seconds& b) { return a.value < b.value; });
    *least += each;
    ++r[static_cast<std::size_t>(least - of_stage.begin())];
  }
  return r;
}

VLMEST_INLINE void expect_chain(const Graph& g, const Stages& stages) {
  std::vector<TensorId> of_stage(static_cast<std::size_t>(stages.count()), none);
  for (const Phase& p : g.phases) {
    if (p.kind != PhaseKind::forward) continue;
    std::fill(of_stage.begin(), of_stage.end(), none);
    for (NodeId n = p.first; n < p.last; ++n)
      for (const TensorId t : g.inputs(g.node(n))) {
        const TensorId owner = g.owner(t);
        const Tensor& x = g.tensor(owner);
        if (x.role != Role::activation || x.born < p.first || x.born >= n) continue;
        const int from = stages.stage(x.born), to = stages.stage(n);
        const auto scope = static_cast<std::size_t>(g.node(x.born).scope);
        if (from == to) continue;
        bool sent = stages.of_scope[scope] == -1;  // tables and masks: every stage makes its own
        if (stages.in_layer[scope]) {
          TensorId& states = of_stage[static_cast<std::size_t>(from)];
          if (states == none) states = owner;
          sent = to == from + 1 && states == owner;
        }
        if (!sent)
          throw Error("layout.mesh",
                      "pp=" + std::to_string(stages.ranks) + ": " + path(g, g.node(n).scope) + " reads what " +
                          path(g, g.node(x.born).scope) + " has made in another stage, which is not modelled",
                      "cut elsewhere with layout.stages, or give dp=N");
      }
  }
}

VLMEST_INLINE std::vector<Crossing> crossings(const Graph& g, const Stages& stages) {
  std::vector<Crossing> r(g.tensors.size(), Crossing::none);
  for (const Phase& p : g.phases) {
    if (p.kind != PhaseKind::forward && p.kind != PhaseKind::backward) continue;
    const auto in_layer = [&](NodeId n) { return stages.in_layer[static_cast<std::size_t>(g.node(n).scope)] != 0; };
    for (NodeId n = p.first; n < p.last; ++n)
      for (const TensorId t : g.inputs(g.node(n))) {
        const TensorId owner = g.owner(t);
        const Tensor& x = g.tensor(owner);
        if (x.role != Role::activation || x.born < p.first || x.born >= n || stages.stage(x.born) == stages.stage(n))
          continue;
        // The hidden states' gradient may come from the last norm, and be added to in place through all layers.
        if (!in_layer(x.born) && !(p.kind == PhaseKind::backward && in_layer(n))) continue;
        r[static_cast<std::size_t>(owner)] = p.kind == PhaseKind::forward ? Crossing::forward : Crossing::backward;
      }
  }
  return r;
}

VLMEST_INLINE std::vector<Bytes> sent(const Graph& g, const Stages& stages, const std::vector<Crossing>& crossings) {
  std::vector<Bytes> r(static_cast<std::size_t>(stages.count() - 1));
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    if (crossings[i] != Crossing::forward) continue;
    Bytes& of_stage = r[static_cast<std::size_t>(stages.stage(g.tensors[i].born))];
    of_stage = std::max(of_stage, requested_bytes(g.tensors[i]));
  }
  return r;
}

VLMEST_INLINE Graph rank_graph(const Graph& g, const Stages& stages, int rank) {
  Graph r = g;
  for (NodeId n = 0; n < g.phases.back().first; ++n)
    if (stages.rank(stages.stage(n)) != rank) r.nodes[static_cast<std::size_t>(n)].scratch = 0;
  return r;
}

VLMEST_INLINE std::vector<StageTime> stage_times(const Graph& g, const Stages& stages, std::span<const Work> of_ops,
                                                 const Device& d, std::span<const StageTime> beside) {
  std::vector<StageTime> r(static_cast<std::size_t>(stages.ranks));
  const Phase *forward = g.phases.data() + (g.phases.size() - 3), *backward = forward + 1, *first = &g.phases[1];
  std::vector<char> is_gradient(g.nodes.size(), 0);
  for (const Tensor& t : g.tensors)
    if (t.role == Role::gradient && t.alias_of == none && t.born >= first->first && t.born < first->last)
      is_gradient[static_cast<std::size_t>(t.born)] = 1;
  for (int rank = 0; rank < stages.ranks; ++rank) {
    const auto run = [&](const Phase& p, Seconds launch, Seconds host, auto&& wanted) {
      Pace pace;
      pace.run_host(host);
      for (NodeId n = p.first; n < p.last; ++n)
        if (stages.rank(stages.stage(n)) == rank && wanted(n)) run_nodes(pace, g, n, n + 1, of_ops, launch, d);
      return pace.wall();
    };
    const auto all = [](NodeId) { return true; };
    StageTime& t = r[static_cast<std::size_t>(rank)];
    const StageTime host = beside.empty() ? StageTime{} : beside[static_cast<std::size_t>(rank)];
    t.forward = run(*forward, d.forward_launch, host.forward, all);
    t.backward = run(*backward, d.backward_launch, host.backward, all);
    t.weights =
        run(*first, d.backward_launch, {}, [&](NodeId n) { return is_gradient[static_cast<std::size_t>(n)] != 0; });
    t.weights = std::min(t.weights, t.backward);
  }
  return r;
}

}  // namespace vlmest::parallel
