// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/allocator/recorded_driver.hpp>

/// Replaying a recorded history: given what a process asked for and where the driver put segments, the allocator
/// decides everything else itself, and every decision is held against the record.
namespace vlmest::allocator {

/// The state that a history begins in. `bases` are where address ranges of expandable segments may begin, besides the
/// lowest pages of `segments`.
struct InitialState {
  std::vector<Segment> segments;
  std::vector<RangeBase> bases;
  Bytes unmapped_requested{};  ///< that unmapped address space counts as last used for
};

struct Replay {
  std::vector<Segment> segments;  ///< at the end, in order of address
  Bytes allocated{}, active{}, reserved{};
  Bytes peak_allocated{}, peak_reserved{};
  std::size_t peak_event = 0;  ///< the allocation that reached the peak
  Fragmentation at_peak;
};

/// The allocator puts an allocation where the history says that it does not lie.
struct Misplaced : Error {
  std::int64_t placed;  ///< where the allocator puts it
  Bytes size;           ///< with its rounding
  Misplaced(const std::string& event, const std::string& what, std::int64_t placed_, Bytes size_)
      : Error(event, what + ", the allocator puts them at " + std::to_string(placed_),
              "check the settings and the state that the history begins in"),
        placed(placed_),
        size(size_) {}
};

namespace replaying {

using Allocator = BasicAllocator<RecordedDriver>;

/// An allocator in the middle of a history.
struct State {
  Allocator allocator;
  std::unordered_map<std::int64_t, Block> blocks;  ///< active ones by address
};

inline Block block_at(const State& s, const TraceEvent& e, std::size_t i) {
  const auto b = s.blocks.find(e.address);
  if (b == s.blocks.end())
    throw Error("event " + std::to_string(i), "frees " + std::to_string(e.address) + ", where nothing is allocated",
                "give the state that the history begins in");
  return b->second;
}

inline void complete(State& s, const TraceEvent& e, std::size_t i) {
  s.allocator.complete_free(block_at(s, e, i));
  s.blocks.erase(e.address);
}

/// The call that event i ends: an allocation, or one that failed.
inline void call(State& s, std::span<const TraceEvent> events, std::size_t i) {
  const auto& e = events[i];
  const auto where = "event " + std::to_string(i);
  const auto got = s.allocator.try_alloc(e.size, e.stream);
  if (!s.allocator.driver().done())
    throw Error("event " + std::to_string(s.allocator.driver().position()),
                "is a " + std::string(name(events[s.allocator.driver().position()].action)) +
                    " that the allocator does not make",
                "check the settings and that no event is missing");
  const auto bytes = std::to_string(e.size.value()) + " bytes ";
  const auto rounded = round_size(s.allocator.config(), e.size);
  if (e.action == TraceAction::oom) {
    if (got) throw Misplaced(where, bytes + "found no room", s.allocator.address(*got), rounded);
    return;
  }
  if (!got) throw Error(where, bytes + "are allocated where the allocator is out of memory", "check the settings");
  if (const auto placed = s.allocator.address(*got); placed != e.address)
    throw Misplaced(where, bytes + "lie at " + std::to_string(e.address), placed, rounded);
  s.blocks.insert_or_assign(e.address, *got);
}

/// Explains the driver's events from `begin` on as those of the call that ends with event `end`, after emptied caches
/// and completed frees that precede it; without a call where `end` is not one. Throws what speaks against a sole call.
inline State explain(const State& before, std::span<const TraceEvent> events, std::size_t begin, std::size_t end,
                     int& attempts) {
  const bool calls =
      end < events.size() && (events[end].action == TraceAction::alloc || events[end].action == TraceAction::oom);
  if (begin == end && !calls) return before;
  std::exception_ptr objection;
  const auto attempt = [&](auto&& step) -> std::optional<State> {
    if (attempts-- <= 0)
      throw Error("event " + std::to_string(begin), "begins what no order of calls explains", "check the settings");
    try {
      State s = before;
      s.allocator.driver().expect(events, begin, end);
      return step(s);
    } catch (const Error&) {
      if (!objection) objection = std::current_exception();
      return std::nullopt;
    }
  };
  const bool completion = begin < end && events[begin].action == TraceAction::free_completed;
  if (completion)
    if (auto s = attempt([&](State& t) {
          complete(t, events[begin], begin);
          return explain(t, events, begin + 1, end, attempts);
        }))
      return std::move(*s);
  if (calls)
    if (auto s = attempt([&](State& t) {
          for (auto i = begin; i < end; ++i)  // what a synchronised device completes inside the call
            if (events[i].action == TraceAction::free_completed) t.blocks.erase(events[i].address);
          call(t, events, end);
          return std::move(t);
        }))
      return std::move(*s);
  if (begin < end)
    if (auto s = attempt([&](State& t) {
          t.allocator.empty_cache();
          const auto reached = t.allocator.driver().position();
          for (auto i = begin; i < reached; ++i)
            if (events[i].action == TraceAction::free_completed) t.blocks.erase(events[i].address);
          if (reached == begin) throw Error("event " + std::to_string(begin), "is not the release of cached memory");
          return explain(t, events, reached, end, attempts);
        }))
      return std::move(*s);
  std::rethrow_exception(objection);
}

/// Recorded while the allocator was at work, before what the work was for: its result, or the next call.
constexpr bool inner(TraceAction a) { return a >= TraceAction::free_completed && a <= TraceAction::segment_unmap; }

/// A free that was complete at once, as most are. Where memory is released next, or runs out, or pages are mapped, it
/// may have been completed by the call that did that, so that call has to explain it.
inline bool at_once(std::span<const TraceEvent> events, std::size_t i) {
  if (i == 0 || events[i].action != TraceAction::free_completed) return false;
  if (events[i - 1].action != TraceAction::free_requested || events[i - 1].address != events[i].address) return false;
  if (i + 1 == events.size()) return true;
  const auto next = events[i + 1].action;
  return next == TraceAction::segment_alloc || !(inner(next) || next == TraceAction::oom);
}

/// What the driver did before event i, from `begin` on, and the call that ends there, if it does.
inline void advance(State& s, std::span<const TraceEvent> events, std::size_t begin, std::size_t i) {
  const bool calls =
      i < events.size() && (events[i].action == TraceAction::alloc || events[i].action == TraceAction::oom);
  bool grows = true;  // nothing was released
  for (auto k = begin; k < i; ++k)
    grows = grows && (events[k].action == TraceAction::segment_alloc || events[k].action == TraceAction::segment_map);
  if (!grows || (begin < i && !calls)) {
    int attempts = 1000;
    s = explain(s, events, begin, i, attempts);
  } else if (calls) {
    s.allocator.driver().expect(events, begin, i);
    call(s, events, i);
  }
  if (i < events.size() && events[i].action == TraceAction::free_requested)
    s.allocator.request_free(block_at(s, events[i], i));
}

}  // namespace replaying

/// Runs a history from its initial state (empty where the history is complete). Throws Error naming the first event
/// that the allocator would not have made: another address, another size, a segment too many or too few.
inline Replay replay(std::span<const TraceEvent> events, const AllocatorConfig& config,
                     const InitialState& initial = {}) {
  replaying::State s{replaying::Allocator(config, RecordedDriver{}), {}};
  for (const auto b : s.allocator.restore(initial.segments, initial.bases, initial.unmapped_requested))
    s.blocks.emplace(s.allocator.address_of(b), b);
  Replay r;
  r.peak_allocated = s.allocator.allocated();
  r.at_peak = s.allocator.fragmentation();
  std::size_t begin = 0;  // of what no call has explained yet
  for (std::size_t i = 0; i <= events.size(); ++i) {
    if (i < events.size() && begin == i && replaying::at_once(events, i)) {
      replaying::complete(s, events[i], i);
      begin = i + 1;
      continue;
    }
    if (i < events.size() && replaying::inner(events[i].action)) continue;
    replaying::advance(s, events, begin, i);
    begin = i + 1;
    if (s.allocator.allocated() > r.peak_allocated) {
      r.peak_allocated = s.allocator.allocated();
      r.peak_event = i;
      r.at_peak = s.allocator.fragmentation();
    }
  }
  r.segments = s.allocator.segments();
  r.allocated = s.allocator.allocated();
  r.active = s.allocator.active();
  r.reserved = s.allocator.reserved();
  r.peak_reserved = s.allocator.peak_reserved();
  return r;
}

}  // namespace vlmest::allocator
