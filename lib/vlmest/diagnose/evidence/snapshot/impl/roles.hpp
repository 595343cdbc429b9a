// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/snapshot/roles.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE Stage stage_of(const CallStackTraits& t, bool training, bool stackless) {
  if ((t.all & trait::in_optimizer) != 0) return Stage::optimizer;
  if ((t.all & trait::in_backward) != 0) return Stage::backward;
  if ((t.all & trait::in_forward) != 0) return Stage::forward;
  if ((t.all & trait::loads) != 0) return Stage::load;
  if ((t.all & trait::takes_input) != 0) return Stage::input;
  if ((t.all & trait::constructs) != 0) return Stage::load;
  // Autograd's threads run no Python: an allocation of the backward has no Python stack.
  return training && stackless ? Stage::backward : Stage::other;
}

VLMEST_INLINE Stages stages_of(const RecordedSnapshot& s, std::span<const TraceEntry> trace,
                               const std::vector<CallStackTraits>& traits) {
  using allocator::TraceAction;
  Stages out;
  for (const auto& t : traits)
    out.training |= (t.all & (trait::in_optimizer | trait::in_backward | trait::zeroes)) != 0;
  // Without any stack in the trace (context=None, or "state") none tells of a backward.
  out.training = out.training && std::any_of(trace.begin(), trace.end(), [](const auto& e) { return e.stack != 0; });
  out.at.reserve(trace.size());
  out.turn.reserve(trace.size());
  out.call.reserve(trace.size());
  Stage now = Stage::other;
  std::uint32_t turn = 0, call = 0;
  StackTable::FrameWords function;
  for (const auto& e : trace) {
    if (e.action == TraceAction::alloc || e.action == TraceAction::oom) {
      const auto& t = traits[e.stack];
      if (const auto next = stage_of(t, out.training, e.stack == 0); next != now && next != Stage::other) {
        now = next;
        ++turn;
      }
      auto f = t.program == CallStackTraits::no_frame ? StackTable::FrameWords{} : s.stacks.words(t.program);
      f.line = 0;
      if (!(f == function)) ++call;
      function = f;
    }
    out.at.push_back(now);
    out.turn.push_back(turn);
    out.call.push_back(call);
  }
  return out;
}

namespace role_rules {

VLMEST_INLINE std::size_t usual_life(const std::vector<Allocation>& all, const Stages& stages, std::uint32_t turn) {
  std::vector<std::size_t> lives;
  for (const auto& a : all)
    if (!a.older() && a.freed != never && stages.turn[a.born] == turn && stages.turn[a.freed] == turn)
      lives.push_back(a.freed - a.born);
  if (lives.empty()) return 0;
  const auto nth = lives.begin() + static_cast<std::ptrdiff_t>(lives.size() * 95 / 100);
  std::nth_element(lives.begin(), nth, lives.end());
  return *nth;
}

}  // namespace role_rules

VLMEST_INLINE std::vector<MemoryRole> memory_roles_of(std::span<const TraceEntry> trace, const SnapshotTimeline& t,
                                                      const Stages& stages,
                                                      const std::vector<CallStackTraits>& traits) {
  using allocator::TraceAction;
  const auto& all = t.allocations;
  std::vector<MemoryRole> roles(all.size(), MemoryRole::unknown);
  // What goes after an allocation has failed goes because of it: the program unwinds.
  std::size_t end = trace.size();
  for (std::size_t i = 0; i < trace.size(); ++i)
    if (trace[i].action == TraceAction::oom) end = i;
  const auto last_turn = stages.turn.empty() ? 0 : stages.turn[std::min(end, stages.turn.size() - 1)];
  const auto life = role_rules::usual_life(all, stages, last_turn);
  const auto same_turn = [&](const Allocation& a) {
    return !a.older() && a.freed != never && stages.turn[a.born] == stages.turn[a.freed];
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (trace.size() <= 1 && traits.size() <= 1) continue;  // no history and no stacks: nothing tells
    Allocation a = all[i];
    if (a.freed != never && a.freed > end) a.freed = never;
    const auto& own = traits[a.stack];
    auto& role = roles[i];
    const bool zeroed =
        a.given_up != never && a.given_up < end && (traits[trace[a.given_up].stack].all & trait::zeroes) != 0;
    if (a.older() && a.stack == 0) {
      // An optimizer that puts new moments in the place of the old ones frees these.
      const bool stepped = a.given_up < end && (traits[trace[a.given_up].stack].all & trait::in_optimizer) != 0;
      role = a.freed == never                        ? MemoryRole::weight
             : zeroed                                ? MemoryRole::gradient
             : stepped                               ? MemoryRole::optimizer_state
             : stages.at[a.freed] == Stage::backward ? MemoryRole::activation
                                                     : MemoryRole::unknown;
      continue;
    }
    const bool in_call = !a.older() && a.born > 0 && trace[a.born - 1].action == TraceAction::alloc &&
                         trace[a.born - 1].stack == a.stack;
    const bool after_segment = !a.older() && a.born > 1 && trace[a.born - 1].action == TraceAction::segment_alloc &&
                               trace[a.born - 2].action == TraceAction::alloc && trace[a.born - 2].stack == a.stack;
    if ((own.all & trait::workspace) != 0 ||
        (a.freed == never && role_rules::workspace_size(a.requested) && (in_call || after_segment) &&
         (own.innermost & (trait::linear | trait::attention)) != 0)) {
      role = MemoryRole::workspace;
      continue;
    }
    const auto stage = stage_of(own, stages.training, a.stack == 0);
    if (stage == Stage::optimizer) {
      role = same_turn(a) ? MemoryRole::temporary : MemoryRole::optimizer_state;
    } else if ((own.all & trait::in_cache) != 0) {
      role = MemoryRole::kv_cache;
    } else if ((own.all & trait::gathers) != 0) {
      role = MemoryRole::weight;
    } else if ((own.all & (trait::accumulates | trait::collective)) != 0) {
      role = MemoryRole::gradient;
    } else if (stage == Stage::backward) {
      const bool unfinished = a.freed == never && !a.older() && stages.turn[a.born] == last_turn;
      const bool recomputed = (own.all & trait::in_forward) != 0 && a.stack != 0;
      const bool kept = zeroed || !(same_turn(a) || (unfinished && end - std::min(a.born, end) <= life));
      role = recomputed ? (same_turn(a) && stages.call[a.born] == stages.call[a.freed] ? MemoryRole::temporary
                                                                                       : MemoryRole::activation)
             : kept     ? MemoryRole::gradient
                        : MemoryRole::temporary;
    } else if (stage == Stage::forward) {
      const bool local = same_turn(a) && stages.call[a.born] == stages.call[a.freed];
      role = local ? MemoryRole::temporary : MemoryRole::activation;
    } else if (stage == Stage::load) {
      role = same_turn(a) ? MemoryRole::temporary : MemoryRole::weight;
    } else if (stage == Stage::input) {
      role = MemoryRole::input;
    }
  }
  return roles;
}

}  // namespace vlmest::diagnose
