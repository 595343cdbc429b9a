// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/allocator/process.hpp>
#include <vlmest/graph/run_script.hpp>

namespace vlmest::allocator {

/// Goes through a script step by step. `observe` is told of the nodes of measured phases, `measured` of their memory.
/// What the process has reserved at the end.
template <class Observe, class Measured>
Bytes walk(const RunScript& script, const Graph& g, Process& process, Observe&& observe, Measured&& measured) {
  using Action = RunStep::Action;
  Bytes reserved{};
  std::size_t mark = 0;
  const auto run = [&](const RunStep& s, const Phase& p) {
    PhaseMemory m = s.measured ? process.run(p, observe) : process.run(p);
    if (s.action == Action::pass) {
      m.after = process.settle(p);
      process.keep();
    }
    reserved = m.reserved;
    if (s.measured) measured(m);
  };
  const auto run_phases = [&](const RunStep& s) {
    const std::span<const Phase> all = g.phases;
    switch (s.phases) {
      case RunStep::Phases::none: break;
      case RunStep::Phases::first: run(s, all[0]); break;
      case RunStep::Phases::second: run(s, all[1]); break;
      case RunStep::Phases::all:
        for (const Phase& p : all) run(s, p);
        break;
      case RunStep::Phases::all_but_last:
        for (const Phase& p : all.first(all.size() - 1)) run(s, p);
        break;
      case RunStep::Phases::states: {
        Phase states = all.back();
        states.last = std::min(states.last, states.first + 1);
        run(s, states);
        break;
      }
    }
  };
  const auto take = [&](std::span<const RunStep> steps) {
    for (const RunStep& s : steps) switch (s.action) {
        case Action::warm_up: process.warm_up(); break;
        case Action::load: process.load(); break;
        case Action::run:
        case Action::pass: run_phases(s); break;
        case Action::drop: process.drop(); break;
        case Action::keep: process.keep(); break;
        case Action::mark: mark = process.mark(); break;
        case Action::rewind: process.rewind(mark); break;
        case Action::empty_cache: process.empty_cache(); break;
      }
  };
  take(script.once);
  for (int round = 1; round <= script.most_rounds; ++round) {
    const Bytes before = reserved;
    take(script.round);
    if (round >= script.least_rounds && reserved == before) break;
  }
  return reserved;
}

}  // namespace vlmest::allocator
