// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <vlmest/allocator/process.hpp>
#include <vlmest/graph/run_script.hpp>

namespace vlmest::allocator {

/// What a process has reserved after two rounds of a script, or the last one where there are fewer, and at its end.
struct ReservedInRounds {
  Bytes after_two, at_end;
};

/// A process on its way through a script.
class Walk {
 public:
  /// A step of a script with one phase at most.
  struct Step {
    RunStep::Action action;
    std::size_t phase = 0;
    bool states = false;  ///< of the phase only what comes before anything runs
    bool measured = false;
    bool operator==(const Step&) const = default;
  };

  explicit Walk(const Graph& g) : g_(g) {}

  std::vector<Step> steps(std::span<const RunStep> script) const {
    std::vector<Step> r;
    for (const RunStep& s : script) {
      if (s.action != RunStep::Action::run && s.action != RunStep::Action::pass) {
        r.push_back({s.action});
        continue;
      }
      const auto [first, last] = phases(s.phases);
      for (std::size_t p = first; p < last; ++p)
        r.push_back({s.action, p, s.phases == RunStep::Phases::states, s.measured});
    }
    return r;
  }

  /// `observe` is told of the nodes of measured phases, `measured` of their memory.
  template <class Observe, class Measured>
  void take(std::span<const Step> steps, Process& process, Observe&& observe, Measured&& measured) {
    using Action = RunStep::Action;
    for (const Step& s : steps) switch (s.action) {
        case Action::warm_up: process.warm_up(); break;
        case Action::load: process.load(); break;
        case Action::run:
        case Action::pass: run(s, process, observe, measured); break;
        case Action::drop: process.drop(); break;
        case Action::keep: process.keep(); break;
        case Action::mark: mark_ = process.mark(); break;
        case Action::rewind: process.rewind(mark_); break;
        case Action::empty_cache: process.empty_cache(); break;
        case Action::set_up: process.set_up(); break;
        case Action::rebuild: process.rebuild_buckets(); break;
      }
  }

  /// The rounds of a script, of which the first one begins with `before` reserved and has the first `taken` steps
  /// behind it; `observe` and `measured` as above.
  template <class Observe, class Measured>
  ReservedInRounds take_rounds(const RunScript& script, Process& process, Bytes before, Observe&& observe,
                               Measured&& measured, std::size_t taken = 0) {
    const std::vector<Step> round = steps(script.round);
    const bool asked = std::any_of(round.begin(), round.end(), [](const Step& s) { return s.measured; });
    Bytes second = reserved_;
    for (int i = 1; i <= script.most_rounds; ++i) {
      const bool compared = i > 1 && !asked;
      if (compared) process.begin_round();
      take(std::span(round).subspan(taken), process, observe, measured);
      if (i <= 2) second = reserved_;
      if (i >= script.least_rounds && reserved_ == before) break;
      if (compared && process.next_round_is_equal()) break;
      before = reserved_;
      taken = 0;
    }
    return {second, reserved_};
  }
  Bytes reserved() const { return reserved_; }

 private:
  struct Range {
    std::size_t first = 0, last = 0;
  };
  Range phases(RunStep::Phases p) const {
    const std::size_t all = g_.phases.size();
    switch (p) {
      case RunStep::Phases::nothing: return {};
      case RunStep::Phases::first: return {0, 1};
      case RunStep::Phases::second: return {1, 2};
      case RunStep::Phases::all: return {0, all};
      case RunStep::Phases::all_but_last: return {0, all - 1};
      case RunStep::Phases::states: return {all - 1, all};
    }
    return {};
  }
  template <class Observe, class Measured>
  void run(const Step& s, Process& process, Observe&& observe, Measured&& measured) {
    Phase p = g_.phases[s.phase];
    if (s.states) p.last = std::min(p.last, p.first + 1);
    PhaseMemory m;
    if (s.measured)
      m = process.run(p, observe);
    else
      process.run_unmeasured(p);
    if (s.action == RunStep::Action::pass) {
      m.after = process.settle(p);
      process.keep();
    }
    reserved_ = process.peak_reserved();
    if (s.measured) measured(m);
  }

  const Graph& g_;
  std::size_t mark_ = 0;
  Bytes reserved_{};
};

/// Goes through a script step by step. `observe` is told of the nodes of measured phases, `measured` of their memory.
/// What the process has reserved at the end.
template <class Observe, class Measured>
Bytes walk(const RunScript& script, const Graph& g, Process& process, Observe&& observe, Measured&& measured) {
  Walk w(g);
  w.take(w.steps(script.once), process, observe, measured);
  return w.take_rounds(script, process, w.reserved(), observe, measured).at_end;
}

/// Goes through one script, and a second process through another; what both begin with runs once. `measured` is told of
/// the first one's phases. What the second process has reserved.
template <class Measured>
ReservedInRounds walk_both(const RunScript& script, const RunScript& other, const Graph& g, Process& process,
                           Measured&& measured) {
  const Unobserved unobserved;
  Walk w(g);
  const std::vector<Walk::Step> once = w.steps(script.once), other_once = w.steps(other.once),
                                round = w.steps(other.round);
  const auto alike = [](std::span<const Walk::Step> a, std::span<const Walk::Step> b) {
    const auto same = [](const Walk::Step& x, const Walk::Step& y) { return x == y && !x.measured; };
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same).first - a.begin());
  };
  const std::size_t begun = alike(once, other_once);
  const bool in_round = begun == other_once.size() && other.most_rounds > 0;
  w.take(std::span(once).first(begun), process, unobserved, measured);
  const Bytes before = w.reserved();
  const std::size_t of_round = in_round ? alike(std::span(once).subspan(begun), round) : 0;
  w.take(std::span(once).subspan(begun, of_round), process, unobserved, measured);

  Process second = process;
  Walk v = w;
  w.take(std::span(once).subspan(begun + of_round), process, unobserved, measured);
  w.take_rounds(script, process, w.reserved(), unobserved, measured);
  const auto unmeasured = [](const PhaseMemory&) {};
  v.take(std::span(other_once).subspan(begun), second, unobserved, unmeasured);
  return v.take_rounds(other, second, in_round ? before : v.reserved(), unobserved, unmeasured, of_round);
}

}  // namespace vlmest::allocator
