// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include <vlmest/graph/engine.hpp>

namespace vlmest {

/// Where one of a stack of equal layers stands.
struct RepeatedLayer {
  int kind = 0;                       ///< layers that run differently differ in this
  ScopeId scope = 0;                  ///< the layer's first scope
  TensorId first_parameter = 0;       ///< its first parameter or buffer
  TensorId first_adapter = none;      ///< its first parameter that was added to the finished model
  ScopeId first_adapter_scope = 0;    ///< and that one's module
  bool input_read_elsewhere = false;  ///< by what runs behind the layers and hands its input a gradient of its own
  bool gradient_as_result = false;    ///< the gradient of its result lies as that does, else row-major
  Shape gradient_strides;             ///< where it lies neither so nor so; else empty
  bool lends = false;                 ///< later layers read more of it than its result, and hand that gradients
};

/// What the backward of a recorded layer runs: for plain layers what follows from the tensors that they saved, for
/// checkpointed ones the second forward run too. All ids are those of the recorded layer.
struct LayerBackward {
  Recording run;
  TensorId seed = none;  ///< stands for the gradient of the layer's result, which nothing else holds
  Shape seed_shape, seed_strides;
  DType seed_dtype = DType::bf16;
  /// A storage that is held for the backward, and after how many of its nodes no more.
  struct Held {
    TensorId owner = none;
    NodeId released = 0;
  };
  std::vector<Held> held;
  NodeId seed_released = none;  ///< none: it is handed on
  NodeId before_second = 0;     ///< nodes of calls that need nothing saved and come first
  NodeId second_forward = 0;    ///< nodes of a checkpointed layer's second forward, which follows them
  std::int64_t saved = 0;       ///< tensors that it saves
  struct Outer {
    GradEdge edge;
    TensorId gradient = none;
  };
  std::vector<Outer> outer;  ///< gradients of what came from outside the layer
  struct Parameter {
    TensorId parameter = none;
    TensorId earlier = none;  ///< stands for the gradient that an earlier micro-batch left
    TensorId sum = none;      ///< stands for what later runs of the layer gave (SharedRuns)
    TensorId gradient = none;
    bool partial = false;        ///< `gradient` is that sum, with this run's in it: earlier runs add theirs
    NodeId sum_released = none;  ///< none: it is handed on
  };
  std::vector<Parameter> parameters;
};

/// The same backward where the gradient of the layer's result is a view, or held elsewhere too: what the engine added
/// to it in place goes to a fresh tensor (BackwardEngine::add_to).
inline LayerBackward out_of_place(const LayerBackward& b) {
  LayerBackward r = b;
  const TensorId base = b.run.from.tensors;
  const auto writes = [&](const Node& n) {
    const auto out = b.run.edges.begin() + (n.first_edge - b.run.from.edges) + n.inputs;
    return n.trait == AtenTrait::accumulation && std::find(out, out + n.outputs, b.seed) != out + n.outputs;
  };
  const auto add = std::find_if(r.run.nodes.begin(), r.run.nodes.end(), writes);
  if (add == r.run.nodes.end()) return r;
  add->trait = AtenTrait::plain;
  add->name = "add.Tensor";
  const auto offset = static_cast<NodeId>(add - r.run.nodes.begin());
  const NodeId at = b.run.from.nodes + offset;
  Tensor fresh;
  fresh.shape = b.seed_shape;
  fresh.strides = b.seed_strides;
  fresh.storage = numel(b.seed_shape);
  fresh.dtype = b.seed_dtype;
  fresh.role = Role::activation;
  fresh.born = at;
  fresh.dies = b.seed_released == none ? none : b.run.from.nodes + b.seed_released;
  fresh.scope = add->scope;
  const auto place =
      std::partition_point(r.run.tensors.begin(), r.run.tensors.end(), [&](const Tensor& t) { return t.born < at; });
  const auto id = base + static_cast<TensorId>(place - r.run.tensors.begin());
  r.run.tensors.insert(place, fresh);
  const auto moved = [&](TensorId t) { return t >= id ? t + 1 : t; };
  const auto result = [&](TensorId t) { return t == b.seed ? id : moved(t); };
  for (Tensor& t : r.run.tensors)
    if (t.alias_of != none) t.alias_of = t.born > at ? result(t.alias_of) : moved(t.alias_of);
  for (const Node& n : r.run.nodes)
    for (std::int32_t i = 0; i < n.inputs + n.outputs; ++i) {
      TensorId& e = r.run.edges[static_cast<std::size_t>(n.first_edge - b.run.from.edges + i)];
      const NodeId node = b.run.from.nodes + static_cast<NodeId>(&n - r.run.nodes.data());
      e = node > at || (node == at && i >= n.inputs) ? result(e) : moved(e);
    }
  for (auto& o : r.outer)
    if (o.gradient != none) o.gradient = result(o.gradient);
  for (auto& p : r.parameters)
    if (p.gradient != none) p.gradient = result(p.gradient);
  r.seed_released = offset + 1;
  return r;
}

/// A layer as it ran once.
struct LayerTemplate {
  static constexpr std::size_t max_state = 10;

  RepeatedLayer layer;
  Recording forward;
  TensorId x = none, y = none;
  TensorId x_owner = none;
  GradEdge x_edge;
  std::size_t states = 0;
  std::array<TensorId, max_state> before{}, before_owner{}, after{};
  std::array<std::int32_t, max_state> holders{};  ///< references to the old state when the layer began
  std::array<NodeId, max_state> old_dies{};
  /// A weight's copy that autocast keeps; `fresh`: the layer made it, else it was there before.
  struct Cast {
    TensorId weight = none, copy = none;
    bool fresh = false;
  };
  std::vector<Cast> casts;
  bool checkpointed = false;
  bool differentiable = false;  ///< it has a backward
  std::int32_t copies = 0;      ///< of it that there are
  LayerBackward backward;
};

/// What the scopes of a recorded layer stand for in a copy of it: how far its own, and those of its adapters, are
/// moved.
struct ScopeShift {
  ScopeId from = 0, to = 0;
  ScopeId adapters_from = 0, adapters_to = 0;
  constexpr ScopeId operator()(ScopeId s) const {
    if (s >= adapters_from) return s < adapters_to ? s + (adapters_to - adapters_from) : s;
    return s >= from && s < to ? s + (to - from) : s;
  }
};

/// What the ids of a recorded layer stand for in a copy of it.
struct LayerPlace {
  const LayerTemplate* t = nullptr;
  RepeatedLayer layer;
  TensorId tensors = 0;  ///< how far the tensors that the layer makes are away from the recorded ones
  TensorId x = none, x_owner = none;
  std::array<TensorId, LayerTemplate::max_state> state{}, state_owner{};
  std::vector<std::pair<TensorId, TensorId>>
      casts;  ///< copies of weights that were there before: recorded, this layer's

  TensorId operator()(TensorId id) const {
    const RepeatedLayer& from = t->layer;
    if (id >= t->forward.from.tensors) return id + tensors;
    if (id == t->x) return x;
    if (id == t->x_owner) return x_owner;
    for (const auto& [recorded, own] : casts)
      if (id == recorded) return own;
    for (std::size_t i = 0; i < t->states; ++i) {
      if (t->before[i] == none) continue;
      if (id == t->before[i]) return state[i];
      if (id == t->before_owner[i]) return state_owner[i];
    }
    // Adapters lie behind the parameters of all layers and before what runs.
    if (from.first_adapter != none && id >= from.first_adapter)
      return id < layer.first_adapter ? id + (layer.first_adapter - from.first_adapter) : id;
    if (id >= from.first_parameter && id < layer.first_parameter)
      return id + (layer.first_parameter - from.first_parameter);
    return id;
  }
  ScopeShift scopes() const {
    const RepeatedLayer& from = t->layer;
    const bool adapted = from.first_adapter != none;
    return {from.scope, layer.scope, adapted ? from.first_adapter_scope : std::numeric_limits<ScopeId>::max(),
            layer.first_adapter_scope};
  }
};

}  // namespace vlmest
