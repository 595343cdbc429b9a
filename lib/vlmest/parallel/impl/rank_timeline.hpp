// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/parallel/rank_timeline.hpp>
#include <vlmest/parallel/tied_sums.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace pipeline {

/// First and last use of a storage by the nodes of one rank; none where they do not use it.
struct Use {
  NodeId first = none, last = none;
};

inline std::vector<Use> uses(const Graph& g, const Stages& stages, int rank) {
  std::vector<Use> r(g.tensors.size());
  for (NodeId n = 0; n < static_cast<NodeId>(g.nodes.size()); ++n) {
    if (stages.rank(stages.stage(n)) != rank) continue;
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

/// Of each phase and stage, the node behind the stage's last one in it; none where the phase is no backward or has
/// none.
inline std::vector<std::vector<NodeId>> backward_ends(const Graph& g, const Stages& stages) {
  std::vector<std::vector<NodeId>> r;
  for (const Phase& p : g.phases) {
    std::vector<NodeId>& ends = r.emplace_back(static_cast<std::size_t>(stages.count()), none);
    if (p.kind != PhaseKind::backward) continue;
    for (NodeId n = p.first; n < p.last; ++n) ends[static_cast<std::size_t>(stages.stage(n))] = n + 1;
  }
  return r;
}

/// The nodes of a stage in a phase, up to those of the rank's stage that runs next.
struct Stretch {
  NodeId first = 0, last = 0;
  int chunk = 0;
  const HeldMicroBatches* held = nullptr;
};

/// The stretches of a rank in the phases that are named, each with what is held in it.
inline std::vector<Stretch> stretches(const Graph& g, const Stages& stages, int rank,
                                      const std::vector<const HeldMicroBatches*>& of_phases) {
  std::vector<Stretch> r;
  for (std::size_t i = 0; i < of_phases.size(); ++i) {
    if (of_phases[i] == nullptr) continue;
    const Phase& p = g.phases[i];
    int chunk = -1;
    for (NodeId n = p.first; n < p.last; ++n) {
      const int stage = stages.stage(n);
      if (stages.rank(stage) != rank || stages.chunk(stage) == chunk) continue;
      chunk = stages.chunk(stage);
      if (!r.empty() && r.back().last > n) r.back().last = n;
      r.push_back({r.empty() || r.back().first < p.first ? p.first : n, p.last, chunk, of_phases[i]});
    }
  }
  return r;
}

/// Saved activations of other micro-batches, of one chunk: as many copies of `saved` as each stretch holds.
inline void add_held(std::vector<Storage>& to, const std::vector<Storage>& saved, int chunk,
                     const std::vector<Stretch>& stretches) {
  for (std::int64_t copy = 1;; ++copy) {
    bool any = false;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const auto holds = [&](std::size_t s) {
        const auto running = static_cast<std::size_t>(stretches[s].chunk);
        return (*stretches[s].held)[running][static_cast<std::size_t>(chunk)] >= copy;
      };
      if (!holds(i)) continue;
      any = true;
      const NodeId first = stretches[i].first;
      while (i + 1 < stretches.size() && holds(i + 1)) ++i;
      for (Storage s : saved) {
        s.born = first;
        s.dies = stretches[i].last;
        s.beside = BesideGraph::in_flight;
        to.push_back(s);
      }
    }
    if (!any) return;
  }
}

/// Lifetimes on one rank without the micro-batches in flight.
class OneMicroBatch {
 public:
  OneMicroBatch(const Graph& g, const Stages& stages, const std::vector<Crossing>& crossings, const RankOfPipeline& of)
      : g_(g),
        stages_(stages),
        crossings_(crossings),
        of_(of),
        uses_(uses(g, stages, of.rank)),
        backward_ends_(backward_ends(g, stages)),
        sums_(tied_sums(g, stages, crossings, of.rank)),
        of_sum_(first_of(sums_, &TiedSum::sum, g.tensors.size())),
        of_part_(first_of(sums_, &TiedSum::part, g.tensors.size())) {}

  Timeline timeline(const Timeline& whole) const {
    Timeline r = whole;
    std::vector<Storage> added;
    for (std::size_t i = 0; i < whole.storages().size(); ++i) {
      const Storage& s = whole.storages()[i];
      if (is_of_weight(s)) {
        const TiedSum* tied = s.role == Role::gradient ? sum_of(s.tensor) : nullptr;
        if (!has_weight(s) || tied != nullptr) r.resize(i, Bytes{});
        if (has_weight(s) && tied != nullptr) {  // it is its own part
          added.push_back(s);
          if (tied->part != none) added.back().born = g_.tensor(tied->part).born;
        }
      } else if (s.role == Role::buffer || s.role == Role::input) {
        const bool used = use(s).first != none;
        if (!used || s.role == Role::input) r.resize(i, used ? s.bytes * of_.micro_batches : Bytes{});
      } else if (s.born < step().first) {
        const Storage here = lives_here(s);
        if (here.born == s.born && here.dies == s.dies && here.bytes > Bytes{}) continue;
        r.resize(i, Bytes{});
        if (here.bytes > Bytes{}) added.push_back(here);
      }
    }
    add_buffers(added);
    r.add(added);
    return r;
  }

 private:
  const Phase& step() const { return g_.phases.back(); }
  const Use& use(const Storage& s) const { return uses_[static_cast<std::size_t>(s.tensor)]; }
  bool is_here(int stage) const { return stages_.rank(stage) == of_.rank; }

  bool is_of_weight(const Storage& s) const {
    return s.role == Role::weight || s.role == Role::gradient || s.role == Role::optimizer_state ||
           (s.born >= step().first && g_.tensor(s.tensor).of != none);
  }
  /// Its own, or a copy of a tied one that belongs to another rank, with a gradient and states.
  bool has_weight(const Storage& s) const {
    const Tensor& t = g_.tensor(s.tensor);
    const TensorId weight = t.of == none ? s.tensor : t.of;
    const Use& used = uses_[static_cast<std::size_t>(weight)];
    return is_here(stages_.of_weight(g_.tensor(weight).scope)) || (used.first != none && used.first < step().first);
  }
  /// The sum that a tensor is; null where it is none.
  const TiedSum* sum_of(TensorId t) const { return first(of_sum_, t); }
  /// The sum that a tensor is this rank's part of.
  const TiedSum* sum_with(TensorId part) const { return first(of_part_, part); }
  const TiedSum* first(const std::vector<std::int32_t>& by_tensor, TensorId t) const {
    const std::int32_t at = by_tensor[static_cast<std::size_t>(t)];
    return at == none ? nullptr : &sums_[static_cast<std::size_t>(at)];
  }
  /// The phase of a node.
  std::size_t phase(NodeId n) const {
    const auto at = std::upper_bound(g_.phases.begin(), g_.phases.end() - 1, n,
                                     [](NodeId node, const Phase& p) { return node < p.last; });
    return static_cast<std::size_t>(at - g_.phases.begin());
  }
  /// The end of a stage in the first backward from a phase on; where there is none, of all of them.
  NodeId backward_end(std::size_t from, int stage) const {
    for (std::size_t i = from; i < g_.phases.size(); ++i)
      if (const NodeId end = backward_ends_[i][static_cast<std::size_t>(stage)]; end != none) return end;
    return step().first;
  }
  bool is_logits(const Storage& s) const {
    return s.scope == g_.head && g_.head != none && stages_.stage(s.born) == stages_.count() - 1 &&
           g_.phases[phase(s.born)].kind == PhaseKind::forward;
  }

  /// An activation as this rank has it: without bytes where it has not.
  Storage lives_here(Storage s) const {
    const int stage = stages_.stage(s.born);
    const Crossing crossing = crossings_[static_cast<std::size_t>(s.tensor)];
    const Use& used = use(s);
    if (sum_of(s.tensor) != nullptr) {
      s.bytes = Bytes{};
      return s;
    }
    if (const TiedSum* tied = sum_with(s.tensor); tied != nullptr && is_here(stage)) {
      const Tensor& sum = g_.tensor(tied->sum);
      if (sum.role == Role::gradient)
        s.bytes = Bytes{};
      else  // it is added to the gradient at once, or where the sum is
        s.dies = is_here(stages_.stage(sum.born)) ? sum.dies : s.born + 1;
      return s;
    }
    if (!is_here(stage)) {
      // What is received lies in its buffer; other things every rank makes for itself, but nothing of a backward.
      const bool of_backward = g_.phases[phase(s.born)].kind == PhaseKind::backward;
      if (used.first == none || crossing != Crossing::none || of_backward) s.bytes = Bytes{};
      s.born = used.first;
      s.dies = used.last + 1;
      return s;
    }
    const std::size_t at = phase(s.born);
    if (crossing == Crossing::forward || is_logits(s)) {
      s.dies = std::max(backward_end(at, stage), used.last + 1);
    } else if (crossing == Crossing::backward) {
      s.dies = backward_end(at + 1, stage);
    } else if (s.dies == none || s.dies >= step().first || s.dies > used.last + 1) {
      const NodeId dies = std::max(s.born, used.last) + 1;  // held for another rank's sake
      if (s.dies == none || dies < s.dies) s.dies = dies;
    }
    return s;
  }

  void add_buffers(std::vector<Storage>& to) const {
    const std::vector<Bytes> bytes = sent(g_, stages_, crossings_);
    const auto add = [&](std::int64_t times, Bytes each, NodeId born, NodeId dies, BesideGraph what) {
      for (std::int64_t i = 0; i < times; ++i) to.push_back({none, born, dies, 0, each, Role::buffer, 0, what});
    };
    for (int stage = of_.rank; stage < stages_.count(); stage += stages_.ranks) {
      if (stage > 0)
        add(of_.micro_batches, bytes[static_cast<std::size_t>(stage - 1)], before_all, none, BesideGraph::receives);
      if (stage + 1 < stages_.count())
        add(of_.micro_batches, bytes[static_cast<std::size_t>(stage)], before_all, none, BesideGraph::receives);
    }
    // The loop's variable still has the logits of the micro-batch before when the next one makes its own.
    if (of_.schedule.kind != ScheduleKind::one_f_one_b || g_.phases.size() < 4) return;
    for (std::size_t i = 0; i < g_.tensors.size(); ++i) {
      const Tensor& t = g_.tensors[i];
      if (t.alias_of != none || t.role != Role::activation || t.born < g_.phases[2].first ||
          t.born >= g_.phases[2].last || !is_here(stages_.count() - 1))
        continue;
      if (is_logits({static_cast<TensorId>(i), t.born, none, t.scope}))
        add(1, requested_bytes(t), g_.phases[2].first, t.born + 1, BesideGraph::last_result);
    }
  }

  const Graph& g_;
  const Stages& stages_;
  const std::vector<Crossing>& crossings_;
  const RankOfPipeline& of_;
  std::vector<Use> uses_;
  std::vector<std::vector<NodeId>> backward_ends_;
  std::vector<TiedSum> sums_;
  std::vector<std::int32_t> of_sum_, of_part_;
};

}  // namespace pipeline

VLMEST_INLINE std::vector<Timeline> rank_timelines(const Graph& g, const Timeline& whole, const Stages& stages,
                                                   const std::vector<Crossing>& crossings, const RankOfPipeline& of) {
  const Timeline one = pipeline::OneMicroBatch(g, stages, crossings, of).timeline(whole);
  const Phase& forward = g.phases[g.phases.size() - 3];
  std::vector<std::vector<Storage>> saved(static_cast<std::size_t>(stages.chunks));
  std::vector<Bytes> bytes(saved.size());
  for (const Storage& s : one.storages())
    if (s.bytes > Bytes{} && left_by(s, forward)) {
      const auto chunk = static_cast<std::size_t>(stages.chunk(stages.stage(s.born)));
      saved[chunk].push_back(s);
      bytes[chunk] += s.bytes;
    }
  const HeldInStep held = held_in_step(of.schedule, of.rank, stages.ranks, of.micro_batches, bytes);

  std::vector<Timeline> r;
  const auto add = [&](const std::vector<const HeldMicroBatches*>& of_phases, int with_gradients) {
    Timeline& t = r.emplace_back(one);
    if (with_gradients < stages.chunks)
      for (std::size_t i = 0; i < t.storages().size(); ++i) {
        const Storage& s = t.storages()[i];
        if (s.role == Role::gradient && stages.chunk(stages.of_weight(s.scope)) < stages.chunks - with_gradients)
          t.resize(i, Bytes{});
      }
    std::vector<Storage> others;
    const auto stretches = pipeline::stretches(g, stages, of.rank, of_phases);
    for (int chunk = 0; chunk < stages.chunks; ++chunk)
      pipeline::add_held(others, saved[static_cast<std::size_t>(chunk)], chunk, stretches);
    t.add(others);
  };
  const bool several = g.phases.size() > 3;  // forward and backward twice: the first micro-batch and the others
  for (int n = 1; several && n < stages.chunks; ++n) {
    const auto at = static_cast<std::size_t>(n - 1);
    add({nullptr, nullptr, &held.forward[at], &held.backward[at]}, n);
  }
  const HeldMicroBatches& backward = of.behind == Behind::forward    ? held.behind_forward
                                     : of.behind == Behind::backward ? held.behind_backward
                                                                     : held.backward.back();
  const std::vector<std::int64_t> none_of_chunks(saved.size(), 0);
  const HeldMicroBatches nothing(saved.size(), none_of_chunks), &before = of.first ? nothing : held.before;
  if (several)
    add({&before, &held.first, &held.forward.back(), &backward}, stages.chunks);
  else
    add({&before, &held.first}, stages.chunks);
  return r;
}

}  // namespace vlmest::parallel
