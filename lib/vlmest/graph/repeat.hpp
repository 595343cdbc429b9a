// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/graph/layer_gradient.hpp>

namespace vlmest {

/// Builds a stack of equal layers: the first of each kind is recorded as it runs, later ones are copied with their ids
/// shifted, their backward too. The result is the same graph as running every layer, for a fraction of the time. It is
/// also where checkpointing takes hold: these layers are what transformers checkpoints (GradientCheckpointingLayer).
///
/// A layer is a function of its input (which the caller goes on holding, as a variable does) and of `state`: variables
/// that it reads and rebinds, such as a cache entry. Everything else that it touches must be the same for all layers of
/// a kind, but for its own parameters and scopes, which make() creates in the same order in every layer.
class LayerRepeater {
 public:
  static constexpr std::size_t max_state = LayerTemplate::max_state;
  using Layer = RepeatedLayer;

  /// checkpointable: the layers' class is a GradientCheckpointingLayer.
  explicit LayerRepeater(Builder& b, bool checkpointable = true) : b_(b), checkpointable_(checkpointable) {}

  /// An argument that the layers get and do not read: checkpointing keeps it for them.
  void pass(const Value& v) {
    if (v) passed_.push_back(v);
  }

  /// Checkpoints no more than so many layers, the first ones.
  void checkpoint_only(std::int64_t layers) { most_checkpointed_ = layers; }

  /// What a layer makes of x, by `run` or as a copy of what an equal one did.
  Value operator()(Layer layer, const Value& x, std::span<Value* const> state, layer_gradient::LayerForward run) {
    find_adapters(layer);
    const auto checkpoint = checkpoint_of(layer);
    const bool checkpointed = checkpoint != Builder::Checkpoint::off;
    ++layers_;
    // A gradient that is there first is added to in the midst of the layer's backward, which is then no copy of
    // another.
    const bool apart = !checkpointed && (layer.lends || (layer.input_read_elsewhere && b_.edge(x)));
    if (!apart)
      if (const auto t = find(layer, x, state, checkpointed)) return is_left_out(*t, x) ? x : copy(t, layer, x, state);
    auto made = std::make_shared<LayerTemplate>();
    LayerTemplate& t = *made;
    t.layer = layer;
    t.checkpointed = checkpointed;
    const GraphMark begin = b_.mark();
    const std::size_t calls = b_.history.calls.size();
    t.x = x.id();
    t.x_owner = b_.graph.owner(x.id());
    t.x_edge = b_.edge(x);
    t.states = state.size();
    for (std::size_t i = 0; i < state.size(); ++i) {
      t.before[i] = state[i]->id();
      t.before_owner[i] = *state[i] ? b_.graph.owner(state[i]->id()) : none;
      t.holders[i] = holders(*state[i]);
    }
    if (checkpointed) b_.saving = {.drop = true, .products = checkpoint == Builder::Checkpoint::all_but_products};
    Value y = run(x);
    const bool differentiable = b_.edge(y).call >= static_cast<std::int32_t>(calls);
    if (!differentiable) b_.saving = {};  // nothing comes back for the products
    b_.forget();
    t.forward = record(b_.graph, begin);
    b_.graph.layers.push_back({begin.nodes, b_.now(), begin.nodes});
    t.y = y.id();
    t.casts = kept_casts(layer, begin.tensors);
    for (std::size_t i = 0; i < state.size(); ++i) {
      t.after[i] = state[i]->id();
      const TensorId old = t.before[i];
      t.old_dies[i] = old != none && b_.references(old) == 0 ? b_.graph.tensor(b_.graph.owner(old)).dies : none;
    }
    // What else than its input a layer hands gradients to may have some already, which decides how they are added.
    const bool alone = !differentiable || (!apart && !hands_elsewhere(calls, t.x_edge, layer.scope));
    if (differentiable && (checkpointed || (b_.copy_layers && alone))) {
      t.differentiable = true;
      t.backward = layer_gradient::rehearse(b_, layer, {x, y, begin, calls, checkpointed, passed_}, run);
      LayerPlace here{.t = made.get(), .layer = layer, .x = t.x, .x_owner = t.x_owner};
      here.state = t.before;
      here.state_owner = t.before_owner;
      layer_gradient::connect(b_, made, here, x, y);
    }
    b_.saving = {};
    if (b_.copy_layers && (checkpointed || alone)) templates_.push_back(std::move(made));
    return y;
  }

 private:
  std::int32_t holders(const Value& v) const { return v ? b_.references(v.id()) : 0; }
  bool alike(TensorId a, TensorId b) const {
    if (a == none || b == none) return a == b;
    const Tensor &s = b_.graph.tensor(a), &t = b_.graph.tensor(b);
    return s.shape == t.shape && s.strides == t.strides && s.dtype == t.dtype;
  }
  /// What the next layer does.
  Builder::Checkpoint checkpoint_of(const Layer& layer) const {
    if (!checkpointable_ || !b_.grad_enabled() || layers_ >= most_checkpointed_) return Builder::Checkpoint::off;
    const bool vision = b_.graph.scopes[static_cast<std::size_t>(layer.scope)].part == Part::vision;
    return vision ? b_.vision_checkpointing : b_.checkpointing;
  }
  /// Whether a layer like the recorded one is to be left out (Builder::most_copies) and can be.
  bool is_left_out(LayerTemplate& t, const Value& x) const {
    if (t.copies >= b_.most_copies && alike(t.y, x.id()) && t.before == t.after) return true;
    ++t.copies;
    return false;
  }
  std::shared_ptr<LayerTemplate> find(const Layer& layer, const Value& x, std::span<Value* const> state,
                                      bool checkpointed) const {
    for (const auto& t : templates_) {
      bool ok = t->layer.kind == layer.kind && t->checkpointed == checkpointed && t->states == state.size() &&
                alike(t->x, x.id()) && static_cast<bool>(t->x_edge) == static_cast<bool>(b_.edge(x)) &&
                same_adapters(t->layer, layer) && same_casts(*t, layer);
      for (std::size_t i = 0; ok && i < state.size(); ++i)
        ok = alike(t->before[i], state[i]->id()) && t->holders[i] == holders(*state[i]);
      if (ok) return t;
    }
    return nullptr;
  }

  /// Whether calls from `first` on hand gradients to something outside the layer that is not its input.
  bool hands_elsewhere(std::size_t first, const GradEdge& input, ScopeId layer) const {
    const auto& calls = b_.history.calls;
    const auto elsewhere = [&](const GradEdge& e) {
      if (!e || (input && e.same_target(input))) return false;
      if (e.parameter != none) return !layer_gradient::inside(b_.graph, b_.graph.tensor(e.parameter).scope, layer);
      return static_cast<std::size_t>(e.call) < first;
    };
    return std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(first), calls.end(),
                       [&](const GradCall& c) { return std::any_of(c.inputs.begin(), c.inputs.end(), elsewhere); });
  }

  /// Adapters were added to the layers one after another, when the model was finished, in the order of their scopes.
  void find_adapters(Layer& layer) const {
    if (b_.first_adapter == none) return;
    const Graph& g = b_.graph;
    const auto first = g.tensors.begin() + b_.first_adapter, last = g.tensors.begin() + b_.last_adapter;
    const auto at = std::partition_point(first, last, [&](const Tensor& t) { return t.scope < layer.scope; });
    if (at == last || !layer_gradient::inside(g, at->scope, layer.scope)) return;
    layer.first_adapter = static_cast<TensorId>(at - g.tensors.begin());
    layer.first_adapter_scope = at->scope;
  }
  /// Whether the same modules of two layers have adapters.
  bool same_adapters(const Layer& a, const Layer& b) const {
    const auto place = [&](const Layer& l, TensorId i) {
      const TensorId t = l.first_adapter + i;
      if (l.first_adapter == none || t >= b_.last_adapter) return none;
      const ScopeId s = b_.graph.tensor(t).scope;
      return layer_gradient::inside(b_.graph, s, l.scope) ? s - l.scope : none;
    };
    for (TensorId i = 0;; ++i) {
      const ScopeId in_a = place(a, i);
      if (in_a != place(b, i)) return false;
      if (in_a == none) return true;
    }
  }

  /// Copies of a layer's weights that autocast keeps; those from tensor `first` on are the layer's own.
  std::vector<LayerTemplate::Cast> kept_casts(const Layer& layer, TensorId first) const {
    std::vector<LayerTemplate::Cast> r;
    const auto& copies = b_.autocast.copies;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const auto weight = static_cast<TensorId>(i);
      if (copies[i] && layer_gradient::inside(b_.graph, b_.graph.tensor(weight).scope, layer.scope))
        r.push_back({weight, copies[i].id(), copies[i].id() >= first});
    }
    return r;
  }
  /// Whether autocast has copies of the same weights of a layer as it had of the recorded one's.
  bool same_casts(const LayerTemplate& t, const Layer& layer) const {
    const LayerPlace place{.t = &t, .layer = layer};
    return std::all_of(t.casts.begin(), t.casts.end(), [&](const LayerTemplate::Cast& c) {
      return static_cast<bool>(b_.autocast.copy_of(place(c.weight))) != c.fresh;
    });
  }

  Value copy(const std::shared_ptr<const LayerTemplate>& t, const Layer& layer, const Value& x,
             std::span<Value* const> state) {
    Graph& g = b_.graph;
    const GraphMark at = b_.mark();
    const NodeId nodes = at.nodes - t->forward.from.nodes;
    LayerPlace place{.t = t.get(),
                     .layer = layer,
                     .tensors = at.tensors - t->forward.from.tensors,
                     .x = x.id(),
                     .x_owner = g.owner(x.id())};
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (t->before[i] == none) continue;
      place.state[i] = state[i]->id();
      place.state_owner[i] = g.owner(state[i]->id());
    }
    for (const auto& c : t->casts)
      if (!c.fresh) place.casts.emplace_back(c.copy, b_.autocast.copy_of(place(c.weight)).id());
    append(g, t->forward, place, place.scopes());
    g.layers.push_back({at.nodes, b_.now(), t->forward.from.nodes});
    b_.references_resize();
    for (std::size_t i = 0; i < state.size(); ++i)
      if (t->after[i] != t->before[i])
        b_.rebind(*state[i], t->after[i] == none ? none : place(t->after[i]),
                  t->old_dies[i] == none ? none : t->old_dies[i] + nodes);
    for (const auto& c : t->casts)
      if (c.fresh) b_.autocast.copy_of(place(c.weight)) = Value(b_, place(c.copy));
    Value y(b_, place(t->y));
    if (t->differentiable) layer_gradient::connect(b_, t, place, x, y);
    return y;
  }

  Builder& b_;
  bool checkpointable_;
  std::int64_t layers_ = 0;  ///< that ran or were copied
  std::int64_t most_checkpointed_ = std::numeric_limits<std::int64_t>::max();
  std::vector<Value> passed_;
  std::vector<std::shared_ptr<LayerTemplate>> templates_;
};

}  // namespace vlmest
