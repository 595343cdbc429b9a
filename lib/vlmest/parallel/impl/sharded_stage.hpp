// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/parallel/sharded_stage.hpp>
#include <vlmest/parallel/states.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace sharded {

using gathered::Moment;
using gathered::Run;
using gathered::Unit;

/// What fully_shard allocates in a rank's step. At most two pairs of a forward and a backward: the first, and one that
/// stands for all others.
class Stage {
 public:
  Stage(std::vector<Storage>& to, const Graph& g, const Strategy& s, const ModelStates& states,
        const std::vector<Unit>& units, const std::vector<char>& own, const StretchOfStep& of)
      : to_(to, units),
        g_(g),
        s_(s),
        states_(states),
        units_(units),
        divides_between_(g.phases.size() > 3 && (of.behind == Behind::forward || of.between)),
        gathers_last_(of.behind == Behind::forward || g.phases.size() < 4),
        first_(of.first),
        reduction_(units.size(), 0),
        casts_(units.size(), 0) {
    for (const Phase& p : g.phases) {
      Run& head = heads_.emplace_back(Run{g.head, none, none});
      for (NodeId n = p.first; n < p.last && g.head != none; ++n) {
        if (g.node(n).scope != g.head || !own[static_cast<std::size_t>(n)]) continue;
        if (head.first == none) head.first = n;
        head.end = n + 1;
      }
      std::vector<Run>& r = runs_.emplace_back(gathered::runs(g, p, states.unit_of));
      std::erase_if(r, [&](const Run& x) { return !own[static_cast<std::size_t>(x.first)]; });
    }
    int turn = 1;
    if (s.reduce_dtype)
      for (const Unit& u : units) turn = std::max(turn, 1 + static_cast<int>(u.weights.size()));
    const auto as_turn = [](int t) { return static_cast<std::uint8_t>(std::min<int>(t, own_turn - 1)); };
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      reduction_[unit] = as_turn(std::min(turn, own_turn - 4));  // where turns end, units share the last
      if (!units[unit].weights.empty()) turn += 2;
    }
    finished_ = as_turn(turn);
    made_last_.resize(g.tensors.size(), none);
    for (NodeId n = last().first; n < last().last; ++n)
      for (const TensorId out : g.outputs(g.node(n))) made_last_[static_cast<std::size_t>(g.owner(out))] = n;
  }

  void add(const std::vector<Storage>& gradients) {
    const Phase& first = g_.phases.front();
    to_.put_weights(0, {first.first}, reduced(0));
    for (std::size_t i = 0; i + 2 < g_.phases.size(); i += 2) {
      forward(i);
      backward(i + 1);
    }
    for (const Storage& s : gradients) add_gradient(s);
    reduce();
  }

 private:
  static std::size_t at(ScopeId unit) { return static_cast<std::size_t>(unit); }
  const Phase& last() const { return g_.phases[g_.phases.size() - 2]; }
  ScopeId unit_of(TensorId weight) const { return states_.unit_of[static_cast<std::size_t>(g_.tensor(weight).scope)]; }
  /// When the unit's reduction begins, and when its gradients have been copied.
  Moment reduced(ScopeId unit, std::uint8_t later = 0) const {
    return {last().last, static_cast<std::uint8_t>(reduction_[at(unit)] + later)};
  }
  /// Ahead of a node's own storages; at the beginning of a phase, behind what it is given.
  static Moment ahead(const Phase& p, NodeId n, std::uint8_t turn) { return {n, n == p.first ? own_turn : turn}; }

  void put_flat(ScopeId unit, Moment comes, Moment goes) { to_.put_flat(unit, g_, mesh(s_).dp_shard, comes, goes); }

  void forward(std::size_t phase) {
    using namespace gathered;
    const Phase& p = g_.phases[phase];
    const bool first = phase == 0;
    const Moment ended{heads_[phase].end == none ? p.last : heads_[phase].end, 0};
    const std::vector<Run>&there = runs_[phase], &back = runs_[1];
    if (first && first_) put_flat(0, {p.first}, there.empty() ? ended : Moment{there.front().first, turn::prefetch});
    for (std::size_t i = 0; i < there.size(); ++i) {
      const Run& r = there[i];
      // What a backward has left whole is there; a unit without a backward is gathered by each forward.
      const bool whole =
          !first && std::any_of(back.begin(), back.end(), [&](const Run& b) { return b.unit == r.unit; });
      if (whole || (!first && !reshards_after_forward(s_))) continue;
      if (!first_ && !reshards_after_forward(s_)) {  // it stays from an earlier forward
        to_.put_weights(r.unit, {p.first}, reduced(r.unit));
        continue;
      }
      put_flat(r.unit, ahead(p, r.first, turn::gather),
               i + 1 < there.size() ? Moment{there[i + 1].first, turn::prefetch} : ended);
      to_.put_weights(r.unit, ahead(p, r.first, turn::copied),
                      reshards_after_forward(s_) ? Moment{r.end, turn::reshard} : reduced(r.unit));
    }
  }

  void backward(std::size_t phase) {
    using namespace gathered;
    if (!reshards_after_forward(s_)) return;
    const Phase& p = g_.phases[phase];
    const bool is_first = phase == 1, stays = is_first && !divides_between_;
    if (!is_first && !divides_between_) return;  // all is there since the first one
    const std::vector<Run>&of_forward = runs_[phase - 1], &back = runs_[phase];
    const bool gathers = is_first || gathers_last_;
    std::vector<Moment> asked(g_.scopes.size(), Moment{none});
    std::vector<ScopeId> before(g_.scopes.size(), 0);
    for (std::size_t k = 1; k < of_forward.size(); ++k) before[at(of_forward[k].unit)] = of_forward[k - 1].unit;
    const NodeId head = heads_[phase].first;
    if (!of_forward.empty())
      asked[at(of_forward.back().unit)] = head == none ? Moment{p.first} : ahead(p, head, turn::prefetch);
    for (const Run& r : back) {
      const Moment goes = stays || &p == &last() ? reduced(r.unit) : divided_again(r.unit);
      if (!gathers) {
        to_.put_weights(r.unit, {p.first}, goes);
        continue;
      }
      const Moment since = asked[at(r.unit)].node == none ? ahead(p, r.first, turn::gather) : asked[at(r.unit)];
      put_flat(r.unit, since, r.first == p.first ? Moment{r.first + 1, 0} : Moment{r.first, turn::prefetch});
      asked[at(r.unit)] = {none};
      to_.put_weights(r.unit, ahead(p, r.first, turn::copied), goes);
      if (const ScopeId next = before[at(r.unit)]; next != 0) asked[at(next)] = ahead(p, r.first, turn::prefetch);
    }
    if (!gathers) return;
    // What was asked for a unit without a backward waits for its next forward, or for the end.
    for (std::size_t unit = 0; unit < asked.size(); ++unit)
      if (asked[unit].node != none) put_flat(static_cast<ScopeId>(unit), asked[unit], {last().last, finished_});
  }
  /// Behind the unit in the second forward.
  Moment divided_again(ScopeId unit) const {
    for (const Run& r : runs_[2])
      if (r.unit == unit) return {r.end, gathered::turn::reshard};
    return reduced(unit);
  }

  bool casts(const Storage& gradient) const {
    return s_.reduce_dtype && *s_.reduce_dtype != g_.tensor(gradient.tensor).dtype;
  }
  /// Where the unit's backward has ended; of the root's the phase.
  NodeId end_of(std::size_t phase, ScopeId unit) const {
    for (const Run& r : runs_[phase])
      if (r.unit == unit) return r.end;
    return g_.phases[phase].last;
  }
  void add_gradient(const Storage& s) {
    using enum BesideGraph;
    const TensorId weight = g_.tensor(s.tensor).of;
    const ScopeId unit = unit_of(weight);
    const Moment goes = reduced(unit, weight == units_[at(unit)].named_last ? 2 : 1);
    if (!casts(s)) {
      to_.put(whole_gradients, unit, s.bytes, {s.born}, goes);
      return;
    }
    // One after the other: its sum comes, then what autograd has made goes.
    const auto turn = static_cast<std::uint8_t>(std::min(casts_[at(unit)]++, own_turn - 6));
    const auto next = static_cast<std::uint8_t>(turn + 1);
    const NodeId first_end = end_of(1, unit);
    to_.put(whole_gradients, unit, s.bytes, {s.born}, {first_end, next});
    to_.put(whole_gradients, unit, size_of(g_.tensor(weight).storage, *s_.reduce_dtype), {first_end, turn}, goes);
    const NodeId again = made_last_[static_cast<std::size_t>(s.tensor)];
    if (g_.phases.size() < 4 || again == none) return;
    to_.put(whole_gradients, unit, s.bytes, {again + 1}, {end_of(3, unit), next});
  }

  void reduce() {
    using enum BesideGraph;
    std::vector<ScopeId> order;
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      if (units_[unit].reduced > Bytes{}) order.push_back(static_cast<ScopeId>(unit));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Unit& u = units_[at(order[i])];
      const Moment result = reduced(order[i], 1), done = reduced(order[i], 2);
      to_.put(reduce_scatter_input, order[i], u.reduced, reduced(order[i]),
              i + 1 < order.size() ? reduced(order[i + 1]) : Moment{last().last, finished_});
      const auto put_part = [&](Bytes bytes, bool stays) {
        to_.put(reduce_scatter_output, order[i], bytes, result, stays ? Moment{g_.phases.back().last, 0} : done,
                reducing_stream, stays ? Role::gradient : Role::workspace);
      };
      put_part(u.shard, u.cast == Bytes{});
      put_part(u.cast, true);
    }
  }

  gathered::UnitStorages to_;
  const Graph& g_;
  const Strategy& s_;
  const ModelStates& states_;
  const std::vector<Unit>& units_;
  bool divides_between_;  ///< a forward runs between the first backward and the one that stands for the others
  bool gathers_last_;     ///< that one finds divided weights
  bool first_;            ///< the first forward is that of the step, not one behind it
  std::vector<std::vector<Run>> runs_;  ///< of the rank's units, by phases
  /// By phases, the output head where the rank has it: the module ends with it, and the loss is outside of it
  /// (PipelineScheduleSingle, loss_fn), so that its hooks run between them.
  std::vector<Run> heads_;
  std::vector<NodeId> made_last_;        ///< by the gradient, the node of the last backward that adds to it
  std::vector<std::uint8_t> reduction_;  ///< of each unit, the turn behind the last backward
  std::uint8_t finished_ = 0;
  std::vector<int> casts_;  ///< of each unit, how many of its gradients have been cast
};

inline std::vector<char> held_weights(const Timeline& part, const Graph& g) {
  std::vector<char> r(g.tensors.size(), 0);
  for (const Storage& s : part.storages())
    if (s.role == Role::weight && s.tensor != none && s.bytes > Bytes{}) r[static_cast<std::size_t>(s.tensor)] = 1;
  return r;
}

}  // namespace sharded

VLMEST_INLINE Gathers gathers(const Strategy& s, const std::vector<PipelineTask>& tasks) {
  Gathers r;
  bool whole = false;
  for (const PipelineTask& t : tasks) {
    const bool forward = t.kind == PipelineTask::Kind::forward;
    if (!whole) ++(forward ? r.forward : r.backward);
    whole = !forward || !reshards_after_forward(s);
  }
  return r;
}

VLMEST_INLINE std::vector<StretchOfStep> stretches_of_step(const Schedule& s, bool divides, int rank, int ranks,
                                                           std::int64_t micro_batches) {
  const std::vector<Bytes> each(static_cast<std::size_t>(s.chunks), Bytes(1));
  const HeldInStep held = held_in_step(s, rank, ranks, micro_batches, each);
  const bool between = held.has_forward_between;
  if (!divides) return {{Behind::any, between, false}};
  std::vector<StretchOfStep> r;
  const bool more = held.before.front().front() > 0;  // forwards behind the first one
  if (more) r.push_back({held.has_behind_forward ? Behind::forward : Behind::backward, between, true});
  if (held.has_behind_forward) r.push_back({Behind::forward, between, !more});
  if (held.has_behind_backward) r.push_back({Behind::backward, between, !more});
  if (r.empty()) r.push_back({Behind::any, between, true});
  return r;
}

VLMEST_INLINE std::vector<gathered::Unit> stage_units(const Timeline& part, const Graph& g, const Strategy& s,
                                                      const ModelStates& states) {
  const std::vector<char> held = sharded::held_weights(part, g);
  return gathered::units(g, s, states, &held);
}

VLMEST_INLINE Timeline shard_stage(Timeline part, const Graph& g, const Stages& stages, int rank, const Strategy& s,
                                   const ModelStates& states, const StretchOfStep& of, Bytes memory) {
  const std::vector<char> held = sharded::held_weights(part, g);
  const std::vector<gathered::Unit> units = gathered::units(g, s, states, &held);
  std::vector<char> own(g.nodes.size());
  for (NodeId n = 0; n < static_cast<NodeId>(own.size()); ++n)
    own[static_cast<std::size_t>(n)] = stages.rank(stages.stage(n)) == rank;
  std::vector<Storage> gradients, added;
  for (std::size_t i = 0; i < part.storages().size(); ++i) {
    const Storage& x = part.storages()[i];
    if (x.role != Role::gradient || x.tensor == none || x.bytes == Bytes{}) continue;
    gradients.push_back(x);
    part.resize(i, Bytes{});
  }
  sharded::Stage(added, g, s, states, units, own, of).add(gradients);
  part = keep(g, std::move(part), shares(s), true);
  if (g.kept_dtype) part.add(cast_inputs(g, part));
  part.add(added);
  part.set_up({.divided = divided_weights(g, s, states, memory, &held)});
  return part;
}

}  // namespace vlmest::parallel
