// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/allocator/config.hpp>
#include <vlmest/parallel/buffers.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::parallel {

namespace gathered {

VLMEST_INLINE std::vector<Run> runs(const Graph& g, const Phase& p, const std::vector<ScopeId>& unit_of) {
  std::vector<Run> r;
  std::vector<std::int32_t> at(g.scopes.size(), none);
  for (NodeId n = p.first; n < p.last; ++n) {
    const ScopeId unit = unit_of[static_cast<std::size_t>(g.node(n).scope)];
    if (unit == 0) continue;
    std::int32_t& i = at[static_cast<std::size_t>(unit)];
    if (i == none) {
      i = static_cast<std::int32_t>(r.size());
      r.push_back({unit, n, n});
    }
    r[static_cast<std::size_t>(i)].end = n + 1;
  }
  return r;
}

VLMEST_INLINE bool stands_behind(const Graph& g, TensorId a, TensorId b) {
  const auto holder = [&](ScopeId s) { return g.scopes[static_cast<std::size_t>(s)].parent; };
  const auto depth = [&](ScopeId s) {
    int r = 0;
    while ((s = holder(s)) != none) ++r;
    return r;
  };
  ScopeId of_a = g.tensor(a).scope, of_b = g.tensor(b).scope;
  if (of_a == of_b) return a > b;
  const int down = depth(of_a) - depth(of_b);
  for (int i = 0; i < down; ++i) of_a = holder(of_a);
  for (int i = 0; i < -down; ++i) of_b = holder(of_b);
  if (of_a == of_b) return down < 0;
  while (holder(of_a) != holder(of_b)) {
    of_a = holder(of_a);
    of_b = holder(of_b);
  }
  return of_a > of_b;
}

VLMEST_INLINE std::vector<Unit> units(const Graph& g, const Strategy& s, const ModelStates& states,
                                      const std::vector<char>* held) {
  const std::int64_t parts = std::max(1, mesh(s).dp_shard);
  std::vector<char> has_gradient(g.tensors.size(), 0);
  for (const Tensor& t : g.tensors)
    if (t.role == Role::gradient && t.alias_of == none && t.of != none)
      has_gradient[static_cast<std::size_t>(t.of)] = 1;
  std::vector<Unit> r(g.scopes.size());
  for (std::size_t i = 0; i < g.loaded().size(); ++i) {
    const Tensor& t = g.tensors[i];
    if (t.role != Role::weight || t.alias_of != none || (held != nullptr && !(*held)[i])) continue;
    Unit& u = r[static_cast<std::size_t>(states.unit_of[static_cast<std::size_t>(t.scope)])];
    const Elements part = shard_of(t, parts), whole = part * parts;
    u.weights.push_back(size_of(whole, t.dtype));
    u.gathered += u.weights.back();
    if (!has_gradient[i]) continue;
    const DType type = s.reduce_dtype.value_or(t.dtype);
    u.reduced += size_of(whole, type);
    u.shard += size_of(part, type);
    if (const DType kept = kept_dtype(g, t); type != kept) u.cast += size_of(part, kept);
    const auto weight = static_cast<TensorId>(i);
    if (parts > 1 && (u.named_last == none || stands_behind(g, weight, u.named_last))) u.named_last = weight;
  }
  return r;
}

/// Collects what one forward and its backward allocate.
class Pass {
 public:
  Pass(std::vector<Storage>& to, const Graph& g, const Strategy& s, const std::vector<Unit>& units,
       const ModelStates& states, const Phase& forward, const Phase& backward)
      : to_(to, units),
        g_(g),
        s_(s),
        units_(units),
        unit_of_(states.unit_of),
        forward_(forward),
        backward_(backward),
        there_(runs(g, forward, unit_of_)),
        back_(runs(g, backward, unit_of_)),
        end_(g.scopes.size(), backward.last) {
    for (const Run& r : back_) end_[at(r.unit)] = r.end;
  }

  void add() {
    gather_forward();
    if (reshards_after_forward(s_)) gather_backward();
    add_gradients();
    reduce();
  }

 private:
  static std::size_t at(ScopeId unit) { return static_cast<std::size_t>(unit); }
  /// Ahead of a node's own storages; at the beginning of a phase, behind what it is given.
  Moment ahead(NodeId n, std::uint8_t turn) const {
    return {n, n == forward_.first || n == backward_.first ? own_turn : turn};
  }

  /// The flat buffer, and before it what comes from the host: this rank's part of each weight.
  void put_flat(ScopeId unit, Moment comes, Moment goes) {
    const int parts = mesh(s_).dp_shard;
    if (parts < 2) return;  // weights are copied from where they are
    if (s_.offload == Offload::parameters)
      for (const Bytes b : units_[at(unit)].weights)
        to_.put(BesideGraph::all_gather_input, unit, Bytes(b.value() / parts), comes, behind(comes), gathering_stream);
    to_.put_flat(unit, g_, parts, comes, goes);
  }

  void gather_forward() {
    put_flat(0, {forward_.first, own_turn},
             there_.empty() ? Moment{forward_.last, 0} : Moment{there_.front().first, turn::prefetch});
    to_.put_weights(0, {forward_.first, own_turn}, {backward_.last, turn::reduce_rest});
    for (std::size_t i = 0; i < there_.size(); ++i) {
      const Run& r = there_[i];
      put_flat(r.unit, ahead(r.first, turn::gather),
               i + 1 < there_.size() ? Moment{there_[i + 1].first, turn::prefetch} : Moment{forward_.last, 0});
      const bool stays = !reshards_after_forward(s_);
      to_.put_weights(r.unit, ahead(r.first, turn::copied),
                      stays ? Moment{end_[at(r.unit)], turn::reshard} : Moment{r.end, turn::reshard});
    }
  }

  void gather_backward() {
    std::vector<std::int32_t> asked(g_.scopes.size(), none);  // when the flat buffer was, as an index into `moments`
    std::vector<Moment> moments;
    const auto ask = [&](ScopeId unit, Moment when) {
      asked[at(unit)] = static_cast<std::int32_t>(moments.size());
      moments.push_back(when);
    };
    std::vector<ScopeId> before(g_.scopes.size(), 0);  // the unit whose forward ran before
    for (std::size_t i = 1; i < there_.size(); ++i) before[at(there_[i].unit)] = there_[i - 1].unit;
    if (!there_.empty()) ask(there_.back().unit, {backward_.first, own_turn});
    for (const Run& r : back_) {
      std::int32_t& since = asked[at(r.unit)];
      put_flat(r.unit, since == none ? ahead(r.first, turn::gather) : moments[static_cast<std::size_t>(since)],
               r.first == backward_.first ? Moment{r.first + 1, 0} : Moment{r.first, turn::prefetch});
      since = none;
      to_.put_weights(r.unit, ahead(r.first, turn::copied), {r.end, turn::reshard});
      if (const ScopeId next = before[at(r.unit)]; next != 0) ask(next, ahead(r.first, turn::prefetch));
    }
    for (std::size_t unit = 0; unit < asked.size(); ++unit)
      if (asked[unit] != none)
        put_flat(static_cast<ScopeId>(unit), moments[static_cast<std::size_t>(asked[unit])],
                 {backward_.last, turn::finished});
  }

  void put_gradient(const Tensor& t, Moment comes) {
    const ScopeId unit = unit_of_[static_cast<std::size_t>(g_.tensor(t.of).scope)];
    const int turn = (unit == 0 ? turn::reduced_rest : turn::reduced) + (t.of == units_[at(unit)].named_last ? 1 : 0);
    to_.put(BesideGraph::whole_gradients, unit, requested_bytes(t), comes,
            {end_[at(unit)], static_cast<std::uint8_t>(turn)});
  }
  void add_gradients() {
    bool first = false;
    for (const Tensor& t : g_.tensors)
      if (t.role == Role::gradient && t.alias_of == none && t.born >= backward_.first && t.born < backward_.last) {
        put_gradient(t, {t.born, own_turn});
        first = true;
      }
    if (first) return;
    // A later micro-batch: the graph adds to the first one's gradients where autograd makes others.
    for (NodeId n = backward_.first; n < backward_.last; ++n)
      for (const TensorId out : g_.outputs(g_.node(n))) {
        const Tensor& t = g_.tensor(g_.owner(out));
        if (t.role != Role::gradient || t.born >= backward_.first) continue;
        put_gradient(t, {n + 1, own_turn});
      }
  }

  void reduce() {
    std::vector<Run> in_order;
    for (const Run& r : back_)
      if (units_[at(r.unit)].reduced > Bytes{}) in_order.push_back(r);
    sort_stably(in_order, [](const Run& a, const Run& b) { return a.end < b.end; });
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      const bool last = i + 1 == in_order.size();
      const Moment next = last ? Moment{backward_.last, turn::reduce_rest} : Moment{in_order[i + 1].end, turn::reduce};
      reduce(in_order[i].unit, {in_order[i].end, turn::reduce}, turn::reduced, next);
    }
    reduce(0, {backward_.last, turn::reduce_rest}, turn::reduced_rest, {backward_.last, turn::finished});
  }
  void reduce(ScopeId unit, Moment comes, std::uint8_t reduced, Moment goes) {
    using enum BesideGraph;
    const Unit& u = units_[at(unit)];
    to_.put(reduce_scatter_input, unit, u.reduced, comes, goes);
    // Added to those of the first micro-batch, or copied to the host: both are over when they return.
    const bool passes = backward_.first != g_.phases[1].first || s_.offload == Offload::parameters;
    const Moment result{comes.node, reduced}, done{comes.node, static_cast<std::uint8_t>(reduced + 1)};
    const auto put_part = [&](Bytes bytes, bool stays) {
      to_.put(reduce_scatter_output, unit, bytes, result, stays ? Moment{g_.phases.back().last, 0} : done,
              reducing_stream, stays ? Role::gradient : Role::workspace);
    };
    put_part(u.shard, !passes && u.cast == Bytes{});
    put_part(u.cast, !passes);
  }

  UnitStorages to_;
  const Graph& g_;
  const Strategy& s_;
  const std::vector<Unit>& units_;
  const std::vector<ScopeId>& unit_of_;
  const Phase &forward_, &backward_;
  std::vector<Run> there_, back_;
  std::vector<NodeId> end_;  ///< of the backward of each unit
};

}  // namespace gathered

VLMEST_INLINE std::vector<std::vector<TensorId>> divided_weights(const Graph& g, const Strategy& s,
                                                                 const ModelStates& states, Bytes memory,
                                                                 const std::vector<char>* held) {
  if (!uses_fully_shard(s)) return {};
  std::vector<std::vector<TensorId>> of_units(g.scopes.size());
  Bytes all{};
  for (std::size_t i = 0; i < g.loaded().size(); ++i)
    if (const Tensor& t = g.tensors[i];
        t.role == Role::weight && t.alias_of == none && (held == nullptr || (*held)[i])) {
      of_units[static_cast<std::size_t>(states.unit_of[static_cast<std::size_t>(t.scope)])].push_back(
          static_cast<TensorId>(i));
      const DType kept = kept_dtype(g, t);
      const Bytes part = size_of(shard_of(t, std::max(1, mesh(s).dp_shard)), kept);
      all += size_of(t.storage, kept) + part + Bytes(2 * allocator::round_large);
    }
  if (all > memory) return {};
  std::rotate(of_units.begin(), of_units.begin() + 1, of_units.end());  // the rest comes last
  std::erase_if(of_units, [](const auto& unit) { return unit.empty(); });
  return of_units;
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

VLMEST_INLINE std::vector<Storage> data_parallel_storages(const Graph& g, const Strategy& s, const ModelStates& states,
                                                          const StepCollectives& c) {
  std::vector<Storage> r;
  if (has_buckets(s))
    for (const Collective& x : c.last_pass)
      r.push_back({none, before_all, none, 0, x.bytes, Role::buffer, 0, BesideGraph::gradient_bucket});
  if (!uses_fully_shard(s)) return r;
  const std::vector<gathered::Unit> units = gathered::units(g, s, states);
  for (std::size_t i = 0; i + 2 < g.phases.size(); i += 2)
    gathered::Pass(r, g, s, units, states, g.phases[i], g.phases[i + 1]).add();
  return r;
}

}  // namespace vlmest::parallel
