// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/graph/layer_template.hpp>
#include <vlmest/unit/call_ref.hpp>

/// The backward of a layer is recorded right after its forward, on a gradient that stands for the real one, cut out of
/// the graph, and put in where the backward pass reaches the layer and each copy of it. The order is the engine's: all
/// calls of a layer run one after another, because the latest recorded one that is ready goes first.
namespace vlmest::layer_gradient {

inline bool inside(const Graph& g, ScopeId s, ScopeId layer) {
  while (s != none && s > layer) s = g.scopes[static_cast<std::size_t>(s)].parent;
  return s == layer;
}
inline bool is_loaded(const Tensor& t) { return t.role == Role::weight || t.role == Role::buffer; }

/// Parameters of the layer that calls from `first` on hand gradients to.
inline std::vector<TensorId> own_parameters(const Builder& b, ScopeId layer, std::size_t first) {
  std::vector<TensorId> r;
  const auto& calls = b.history.calls;
  for (std::size_t i = first; i < calls.size(); ++i)
    for (const GradEdge& e : calls[i].inputs)
      if (e.parameter != none && std::find(r.begin(), r.end(), e.parameter) == r.end() &&
          inside(b.graph, b.graph.tensor(e.parameter).scope, layer))
        r.push_back(e.parameter);
  return r;
}

/// Takes away what the second run of a checkpointed layer does not reach, because it ends with the last tensor that is
/// saved (torch/utils/checkpoint.py, _StopRecomputationError).
inline void stop_early(Builder& b, const GraphMark& begin) {
  Graph& g = b.graph;
  const GraphMark stop = b.saving.stop;
  for (TensorId t = stop.tensors; t < static_cast<TensorId>(g.tensors.size()); ++t)
    if (g.tensor(t).alias_of == none && b.references(t) > 0) return;
  for (TensorId i = begin.tensors; i < stop.tensors; ++i) {
    Tensor& t = g.tensors[static_cast<std::size_t>(i)];
    if (t.dies != none) t.dies = std::min(t.dies, stop.nodes);
    if (t.born >= stop.nodes && t.alias_of == none) t.storage = Elements{};
  }
  b.history.truncate(static_cast<std::size_t>(stop.tensors), b.history.calls.size());
  b.truncate(stop);
}

/// Storages from outside that the second run of a layer reads: torch.utils.checkpoint keeps a function's arguments.
inline std::vector<TensorId> arguments(const Graph& g, const GraphMark& begin) {
  std::vector<TensorId> r;
  for (auto n = static_cast<std::size_t>(begin.nodes); n < g.nodes.size(); ++n)
    for (const TensorId id : g.inputs(g.nodes[n])) {
      const TensorId o = g.owner(id);
      if (o < begin.tensors && !is_loaded(g.tensor(o)) && std::find(r.begin(), r.end(), o) == r.end()) r.push_back(o);
    }
  return r;
}

/// A layer's forward, of its input. Its lambda is called through this, so that what records a layer and its backward is
/// compiled once and not once for each kind of layer.
using LayerForward = CallRef<Value, const Value&>;

/// How a layer's forward is run when gradients are asked for, and what must be known of it afterwards.
struct Recorded {
  const Value& x;
  Value& y;
  GraphMark begin;    ///< of the forward
  std::size_t calls;  ///< differentiable calls before it
  bool checkpointed = false;
  std::span<const Value> passed;  ///< further arguments
};

/// The second forward of a checkpointed layer, up to where it stops. `passed` receives what the layer's arguments hold.
inline void run_again(Builder& b, const Recorded& f, const AutocastState& outside, std::vector<TensorId>& passed,
                      LayerForward run) {
  const GraphMark begin = b.mark();
  const std::int64_t saved = b.saving.saved;
  b.saving.drop = false;
  b.saving.saved = b.saving.noted = 0;
  b.saving.stop_at = saved;
  Value again;
  {
    std::optional<Autocast> entered;
    if (outside.enabled) entered.emplace(b, outside.lower);
    again = run(f.x);
  }
  ++b.history.calls[static_cast<std::size_t>(b.edge(again).call)].holders;  // the backward pass
  again.reset();
  b.forget();
  passed = arguments(b.graph, begin);
  for (const Value& v : f.passed) passed.push_back(b.graph.owner(v.id()));
  if (saved > 0 && b.saving.saved >= saved) stop_early(b, begin);
  b.saving = {};
}

/// Notes which storages from before the backward it lets go of, and when. A checkpointed layer's arguments are held by
/// the hooks on what its calls saved, thus until the last of these calls is over (torch/utils/checkpoint.py,
/// _checkpoint_hook; engine.cpp, evaluate_function: release_variables).
inline void note_holds(const Builder& b, LayerBackward& r, const std::vector<std::int32_t>& references_before,
                       std::span<const Release> releases, std::span<const TensorId> passed, NodeId saved_until) {
  const Graph& g = b.graph;
  const GraphMark& begin = r.run.from;
  const NodeId last = std::max(begin.nodes, saved_until);
  std::vector<NodeId> released(references_before.size(), none);
  std::vector<TensorId> owners(passed.begin(), passed.end());  // of storages that it may let go of
  for (const Release& e : releases) {
    if (e.owner >= begin.tensors) continue;
    NodeId& at = released[static_cast<std::size_t>(e.owner)];
    if (at == none) owners.push_back(e.owner);
    at = e.at;
  }
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  owners.erase(std::lower_bound(owners.begin(), owners.end(), r.seed), owners.end());
  const auto is_passed = [&](TensorId t) { return std::find(passed.begin(), passed.end(), t) != passed.end(); };
  for (auto& p : r.parameters)
    if (p.sum != none && b.references(p.sum) == 0)
      p.sum_released = released[static_cast<std::size_t>(p.sum)] - begin.nodes;
  for (const TensorId t : owners) {
    const auto i = static_cast<std::size_t>(t);
    if (is_passed(t))
      r.held.push_back({t, std::max(released[i], last) - begin.nodes});
    else if (b.references(t) < references_before[i] && !is_loaded(g.tensor(t)))
      r.held.push_back({t, released[i] - begin.nodes});
  }
  if (b.references(r.seed) == 0) r.seed_released = released[static_cast<std::size_t>(r.seed)] - begin.nodes;
}

/// Records and cuts out what the backward of a layer runs. `run(x)` is the layer's forward, for a checkpointed one.
inline LayerBackward rehearse(Builder& b, const RepeatedLayer& layer, const Recorded& f, LayerForward run) {
  Graph& g = b.graph;
  LayerBackward r;
  b.forget();
  const std::vector<TensorId> own = own_parameters(b, layer.scope, f.calls);
  ParameterGradients earlier = std::exchange(b.gradients, {});
  ParameterGradients sums = std::exchange(b.shared.sums, {});
  // The backward pass is outside of autocast; the second run of a function enters it anew.
  AutocastState outside = std::exchange(b.autocast, {});

  const GraphMark before = b.mark();
  Value seed = b.existing("gradient", Role::activation, f.y.dtype(), f.y.shape());
  r.seed = seed.id();
  r.seed_shape = seed.shape();
  r.seed_strides =
      layer.gradient_as_result ? eager::strides_like(f.y.tensor(), f.y.shape()) : contiguous_strides(r.seed_shape);
  if (layer.gradient_strides.rank() > 0) r.seed_strides = layer.gradient_strides;
  g.tensors[static_cast<std::size_t>(r.seed)].strides = r.seed_strides;
  r.seed_dtype = seed.dtype();
  BackwardEngine engine;
  engine.unpacked = f.checkpointed;
  engine.partial = b.shared.before > 0;
  for (const TensorId p : own) {
    LayerBackward::Parameter& to = r.parameters.emplace_back();
    to.parameter = p;
    to.partial = engine.partial;
    if (b.shared.after > 0) {
      Value sum = b.existing("gradient", Role::activation, g.tensor(p).dtype, g.tensor(p).shape);
      to.sum = sum.id();
      engine.begin_sum(p, std::move(sum), b.shared.after == 1);
    }
    if (to.partial || !earlier.has(p)) continue;
    b.gradients.of(p) = b.existing("gradient", Role::gradient, g.tensor(p).dtype, g.tensor(p).shape);
    to.earlier = b.gradients.of(p).id();
  }

  const GraphMark begin = b.mark();
  const std::vector<std::int32_t> references = b.reference_counts();
  std::vector<Release> releases;
  b.note_releases(&releases);
  const struct StopNoting {  // also where something throws
    Builder& b;
    ~StopNoting() { b.note_releases(nullptr); }
  } stop_noting{b};
  std::vector<TensorId> passed;
  std::vector<std::int32_t> used;  // calls before the layer, which its own hold
  const auto note_used = [&](std::size_t first) {
    for (std::size_t i = first; i < b.history.calls.size(); ++i)
      for (const GradEdge& e : b.history.calls[i].inputs)
        if (e.call != none && static_cast<std::size_t>(e.call) < f.calls) used.push_back(e.call);
  };
  const auto owns = [&](TensorId p) { return std::find(own.begin(), own.end(), p) != own.end(); };
  note_used(f.calls);
  engine.begin(b, b.edge(f.y), std::move(seed), static_cast<std::int32_t>(f.calls), owns);
  if (f.checkpointed) {  // what was saved is made again when it is first asked for
    r.saved = b.saving.saved;
    engine.run_until_saved(owns);
    const NodeId second = b.mark().nodes;
    const std::size_t calls = b.history.calls.size();
    run_again(b, f, outside, passed, run);
    note_used(calls);
    r.before_second = second - begin.nodes;
    r.second_forward = b.mark().nodes - second;
    engine.go_on_with(static_cast<std::int32_t>(calls));
  }
  engine.run_rest(owns);
  b.note_releases(nullptr);
  b.forget();

  ParameterGradients partial;
  for (const TensorId p : own) partial.of(p) = engine.take_sum(p);
  r.run = record(g, begin);
  note_holds(b, r, references, releases, passed, engine.saved_until);
  for (const auto& o : engine.outer) r.outer.push_back({o.edge, o.gradient ? o.gradient.id() : none});
  ParameterGradients& made = engine.partial ? partial : b.gradients;
  for (auto& p : r.parameters) p.gradient = made.has(p.parameter) ? made.of(p.parameter).id() : none;
  std::vector<TensorId*> results;
  for (auto& o : r.outer) results.push_back(&o.gradient);
  for (auto& p : r.parameters) results.push_back(&p.gradient);
  leave_out_views(r.run, results);

  engine.outer.clear();
  partial = {};
  b.gradients = std::move(earlier);
  b.shared.sums = std::move(sums);
  b.autocast = std::move(outside);
  b.history.detach(f.begin.tensors);
  b.history.truncate(static_cast<std::size_t>(before.tensors), f.calls);
  for (const std::int32_t at : used) --b.history.calls[static_cast<std::size_t>(at)].holders;
  b.truncate(before);
  return r;
}

/// Puts a layer's backward in for the layer at `place`. g: the gradient of its result in; those of what came from
/// outside out.
inline void run(Builder& b, const LayerPlace& place, const LayerBackward& r, std::vector<Value>& held, Gradients& g) {
  const GraphMark at = b.mark();
  const TensorId tensors = at.tensors - r.run.from.tensors;
  std::vector<TensorId> earlier(static_cast<std::size_t>(r.run.from.tensors - r.seed), none);
  for (const auto& p : r.parameters) {
    if (p.earlier != none)
      earlier[static_cast<std::size_t>(p.earlier - r.seed)] = b.gradients.of(place(p.parameter)).id();
    if (p.sum != none) earlier[static_cast<std::size_t>(p.sum - r.seed)] = b.shared.sums.of(place(p.parameter)).id();
  }
  const TensorId seed = g.in[0].id();
  const auto map = [&](TensorId id) {
    if (id == r.seed) return seed;
    if (id > r.seed) return earlier[static_cast<std::size_t>(id - r.seed)];
    return place(id);
  };
  append(b.graph, r.run, map, place.scopes());
  if (place.t->checkpointed) {
    const NodeId second = at.nodes + r.before_second;
    b.graph.second_forwards.push_back({second, second + r.second_forward, r.saved});
  }
  b.references_resize();
  const auto made = [&](TensorId id) { return Value(b, id >= r.run.from.tensors ? id + tensors : map(id)); };
  for (std::size_t i = 0; i < r.outer.size(); ++i)
    if (r.outer[i].gradient != none) g.out[i] = made(r.outer[i].gradient);
  for (const auto& p : r.parameters) {
    if (p.gradient == none) continue;
    const TensorId parameter = place(p.parameter);
    Value gradient = made(p.gradient), &sum = b.shared.sums.of(parameter);
    if (p.sum_released != none) b.release_at(sum, at.nodes + p.sum_released);
    sum.reset();
    if (!p.partial && p.sum != none && p.earlier == none) b.label(gradient, "gradient", Role::gradient);
    (p.partial ? b.shared.sums : b.gradients).of(parameter) = std::move(gradient);
  }
  for (std::size_t i = 0; i < held.size(); ++i) b.release_at(held[i], at.nodes + r.held[i].released);
  if (r.seed_released != none) b.release_at(g.in[0], at.nodes + r.seed_released);
}

/// Records that y came from the layer at `place`, as one differentiable call.
inline void connect(Builder& b, std::shared_ptr<const LayerTemplate> t, const LayerPlace& place, const Value& x,
                    const Value& y) {
  GradCall call{.name = "Layer"};
  const GradEdge from = b.edge(x);
  const GradEdge recorded = t->x_edge;
  for (const auto& o : t->backward.outer)
    call.inputs.push_back(recorded && o.edge.same_target(recorded) ? from : o.edge);
  std::vector<Value> held;
  held.reserve(t->backward.held.size());
  for (const auto& h : t->backward.held) {
    const TensorId owner = place(h.owner);
    b.revive(owner);
    held.emplace_back(b, owner);
  }
  const InScope in(b, place.layer.scope);
  call.run = [&b, t = std::move(t), place, held = std::move(held)](Gradients& g) mutable {
    if (eager::is_alone(g.in[0]))
      run(b, place, t->backward, held, g);
    else
      run(b, place, out_of_place(t->backward), held, g);
  };
  b.differentiable(std::move(call), std::span<const Value>(&y, 1));
}

}  // namespace vlmest::layer_gradient
