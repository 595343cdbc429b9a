// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/inversion/hypothesis.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/replay.hpp>

namespace vlmest::diagnose {

/// One call of the allocator that a run makes.
struct PlannedAllocation {
  LiveTensor tensor;            ///< bytes: as requested, before any rounding
  NodeId node = none;           ///< what runs; none while the model is loaded
  std::string_view phase = "";  ///< "load", or the graph's: "prefill", "decode", "forward", "backward", "step"
  Moment moment = Moment::load;
  Bytes before{};  ///< allocated, with the allocator's rounding, when it is asked for
};

namespace planned_allocations {

/// What a phase asks for, in order. `nodes` are what a replay observed of it.
class Recorder {
 public:
  Recorder(const Graph& g, const Timeline& timeline, const allocator::Process& process,
           std::vector<PlannedAllocation>& out)
      : g_(g), timeline_(timeline), process_(process), out_(out) {}

  /// Parameters and buffers one after the other, then the inputs.
  void load() {
    Bytes before{};
    for (std::size_t i = 0; i < timeline_.storages().size(); ++i) {
      const Storage& s = timeline_.storages()[i];
      if (!g_.phases.empty() && s.born > g_.phases.front().first) break;
      if (s.role != Role::weight && s.role != Role::buffer && s.role != Role::input) continue;
      out_.push_back({{s.tensor, "", none, s.bytes}, none, "load", Moment::load, before});
      before += process_.occupied(i);
    }
  }

  /// `less` is taken off what the replay had allocated: states that do not exist yet.
  void phase(const Phase& p, std::span<const allocator::NodeMemory> nodes, Moment moment, Bytes less = {}) {
    const auto all = timeline_.storages();
    std::size_t next = 0;
    while (next < all.size() && all[next].born < p.first) ++next;
    for (const allocator::NodeMemory& m : nodes) {
      if (m.node < p.first || m.node >= p.last) continue;
      while (next < all.size() && all[next].born < m.node) ++next;
      std::size_t last = next;
      Bytes made{};
      for (; last < all.size() && all[last].born == m.node; ++last)
        if (is_made(all[last])) made += process_.occupied(last);
      Bytes before = m.allocated - m.scratch - made - less;
      for (; next < last; ++next) {
        if (!is_made(all[next])) continue;
        out_.push_back({{all[next].tensor, "", none, all[next].bytes}, m.node, name(p.kind), moment, before});
        before += process_.occupied(next);
      }
      for (const Bytes b : g_.scratch_of(g_.node(m.node))) {
        out_.push_back({{none, "scratch", m.node, b}, m.node, name(p.kind), moment, before});
        before += b;
      }
    }
  }

  /// The states that the first step makes, each when its turn comes.
  void states(const Phase& step, Bytes before) {
    for (std::size_t i = 0; i < timeline_.storages().size(); ++i) {
      const Storage& s = timeline_.storages()[i];
      if (s.role != Role::optimizer_state) continue;
      out_.push_back({{s.tensor, "", none, s.bytes}, step.first, name(step.kind), Moment::first_step, before});
      before += process_.occupied(i);
    }
  }

 private:
  static bool is_made(const Storage& s) { return s.role != Role::input && s.role != Role::optimizer_state; }

  const Graph& g_;
  const Timeline& timeline_;
  const allocator::Process& process_;
  std::vector<PlannedAllocation>& out_;
};

}  // namespace planned_allocations

/// Everything that loading, a prefill and a decode step ask for, in the order of a run.
std::vector<PlannedAllocation> inference_allocations(const Graph& g, const Timeline& timeline, const Device& device,
                                                     const allocator::AllocatorConfig& settings = {});

/// Everything that loading, the first training step and any later one ask for, in the order of a run.
std::vector<PlannedAllocation> training_allocations(const Graph& g, const Timeline& timeline, const Device& device,
                                                    const allocator::AllocatorConfig& settings = {});

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/planned_allocations.hpp>
#endif
