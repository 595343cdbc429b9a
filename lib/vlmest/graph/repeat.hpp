// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include <vlmest/graph/builder.hpp>

namespace vlmest {

/// Builds a stack of equal layers: the first of each kind is recorded as it runs, later ones are copied with their ids
/// shifted. The result is the same graph as running every layer, for a fraction of the time.
///
/// A layer is a function of its input (which the caller goes on holding, as a variable does) and of `state`: variables
/// that it reads and rebinds, such as a cache entry. Everything else that it touches must be the same for all layers of
/// a kind, but for its own parameters and scopes, which make() creates in the same order in every layer.
class LayerRepeater {
 public:
  static constexpr std::size_t max_state = 6;

  explicit LayerRepeater(Builder& b) : b_(b) {}

  struct Layer {
    int kind = 0;                  ///< layers that run differently differ in this
    ScopeId scope = 0;             ///< the layer's first scope
    TensorId first_parameter = 0;  ///< its first parameter or buffer
  };

  template <class Run>
  Value operator()(const Layer& layer, const Value& x, std::span<Value* const> state, Run&& run) {
    if (const Template* t = find(layer, x, state)) return copy(*t, layer, x, state);
    Template t;
    t.layer = layer;
    t.begin = mark();
    t.x = x.id();
    t.states = state.size();
    for (std::size_t i = 0; i < state.size(); ++i) {
      t.before[i] = state[i]->id();
      t.holders[i] = holders(*state[i]);
    }
    Value y = run(x);
    t.end = mark();
    t.y = y.id();
    for (std::size_t i = 0; i < state.size(); ++i) {
      t.after[i] = state[i]->id();
      const TensorId old = t.before[i];
      t.old_dies[i] = old != none && b_.references(old) == 0 ? b_.graph.tensor(b_.graph.owner(old)).dies : none;
    }
    for (TensorId i = t.begin.tensors; i < t.end.tensors; ++i)
      if (b_.graph.tensor(i).alias_of == none && b_.references(i) > 0) t.survivors.push_back(i);
    templates_.push_back(std::move(t));
    return y;
  }

 private:
  struct Mark {
    NodeId nodes = 0;
    TensorId tensors = 0;
    std::int32_t edges = 0, scratch = 0;
  };
  struct Template {
    Layer layer;
    Mark begin, end;
    TensorId x = none, y = none;
    std::size_t states = 0;
    std::array<TensorId, max_state> before{}, after{};
    std::array<std::int32_t, max_state> holders{};  ///< references to the old state when the layer began
    std::array<NodeId, max_state> old_dies{};
    std::vector<TensorId> survivors;  ///< storages of the layer that outlive it
  };

  Mark mark() const {
    const Graph& g = b_.graph;
    return {static_cast<NodeId>(g.nodes.size()), static_cast<TensorId>(g.tensors.size()),
            static_cast<std::int32_t>(g.edges.size()), static_cast<std::int32_t>(g.scratch.size())};
  }
  std::int32_t holders(const Value& v) const { return v ? b_.references(v.id()) : 0; }
  bool alike(TensorId a, TensorId b) const {
    if (a == none || b == none) return a == b;
    const Tensor &s = b_.graph.tensor(a), &t = b_.graph.tensor(b);
    return s.shape == t.shape && s.strides == t.strides && s.dtype == t.dtype;
  }
  const Template* find(const Layer& layer, const Value& x, std::span<Value* const> state) const {
    if (b_.grad_enabled()) return nullptr;  // every layer saves for its own backward
    for (const auto& t : templates_) {
      bool ok = t.layer.kind == layer.kind && t.states == state.size() && alike(t.x, x.id());
      for (std::size_t i = 0; ok && i < state.size(); ++i)
        ok = alike(t.before[i], state[i]->id()) && t.holders[i] == holders(*state[i]);
      if (ok) return &t;
    }
    return nullptr;
  }

  /// Where a tensor of the recorded layer lies in the new one.
  struct Shift {
    const Template& t;
    TensorId tensors;         ///< distance of the tensors that the layer makes
    TensorId parameters;      ///< distance of its parameters
    TensorId parameters_end;  ///< where the new layer's begin; the recorded one's lie before
    TensorId x, x_owner, old_x_owner;
    std::array<TensorId, max_state> state{}, state_owner{}, old_state_owner{};

    TensorId operator()(TensorId id) const {
      if (id >= t.begin.tensors) return id + tensors;
      if (id >= t.layer.first_parameter && id < parameters_end) return id + parameters;
      if (id == t.x) return x;
      if (id == old_x_owner) return x_owner;
      for (std::size_t i = 0; i < t.states; ++i) {
        if (t.before[i] == none) continue;
        if (id == t.before[i]) return state[i];
        if (id == old_state_owner[i]) return state_owner[i];
      }
      return id;
    }
  };

  Value copy(const Template& t, const Layer& layer, const Value& x, std::span<Value* const> state) {
    Graph& g = b_.graph;
    check_room(g, static_cast<std::size_t>(t.end.tensors - t.begin.tensors),
               static_cast<std::size_t>(t.end.nodes - t.begin.nodes));
    const Mark at = mark();
    const NodeId dn = at.nodes - t.begin.nodes;
    Shift shift{t,
                at.tensors - t.begin.tensors,
                layer.first_parameter - t.layer.first_parameter,
                layer.first_parameter,
                x.id(),
                g.owner(x.id()),
                g.owner(t.x),
                {},
                {},
                {}};
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (t.before[i] == none) continue;
      shift.state[i] = state[i]->id();
      shift.state_owner[i] = g.owner(state[i]->id());
      shift.old_state_owner[i] = g.owner(t.before[i]);
    }

    const auto room = [](auto& v, std::int32_t more) {
      if (v.capacity() < v.size() + static_cast<std::size_t>(more))
        v.reserve(v.size() * 2 + static_cast<std::size_t>(more));
    };
    const ScopeId ds = layer.scope - t.layer.scope;
    room(g.tensors, t.end.tensors - t.begin.tensors);
    for (TensorId i = t.begin.tensors; i < t.end.tensors; ++i) {
      Tensor& to = g.tensors.emplace_back(g.tensors[static_cast<std::size_t>(i)]);
      to.born += dn;
      to.scope += ds;
      if (to.dies != none) to.dies += dn;
      if (to.alias_of != none) to.alias_of = g.owner(shift(to.alias_of));
    }
    b_.references_resize();
    for (TensorId s : t.survivors) g.tensors[static_cast<std::size_t>(s + shift.tensors)].dies = none;

    room(g.nodes, t.end.nodes - t.begin.nodes);
    for (NodeId i = t.begin.nodes; i < t.end.nodes; ++i) {
      Node& to = g.nodes.emplace_back(g.nodes[static_cast<std::size_t>(i)]);
      to.first_edge += at.edges - t.begin.edges;
      to.first_scratch += at.scratch - t.begin.scratch;
      to.scope += ds;
    }
    room(g.edges, t.end.edges - t.begin.edges);
    for (std::int32_t i = t.begin.edges; i < t.end.edges; ++i)
      g.edges.push_back(shift(g.edges[static_cast<std::size_t>(i)]));
    room(g.scratch, t.end.scratch - t.begin.scratch);
    for (std::int32_t i = t.begin.scratch; i < t.end.scratch; ++i)
      g.scratch.push_back(g.scratch[static_cast<std::size_t>(i)]);

    for (std::size_t i = 0; i < state.size(); ++i)
      if (t.after[i] != t.before[i])
        b_.rebind(*state[i], t.after[i] == none ? none : shift(t.after[i]),
                  t.old_dies[i] == none ? none : t.old_dies[i] + dn);
    return Value(b_, shift(t.y));
  }

  Builder& b_;
  std::vector<Template> templates_;
};

}  // namespace vlmest
