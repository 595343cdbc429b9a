// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vlmest/allocator/heap.hpp>
#include <vlmest/allocator/memory_snapshot.hpp>

namespace vlmest::allocator {

/// A driver that answers as it once did: addresses, and where memory was short, come from the recorded events of one
/// call into the allocator, in their order. Throws Error naming the event where the allocator asks for something else.
class RecordedDriver {
 public:
  /// The events of the next call: those from `begin` up to `end` of the whole history.
  void expect(std::span<const TraceEvent> history, std::size_t begin, std::size_t end) {
    history_ = history.first(end);
    at_ = begin;
  }
  std::size_t position() const { return at_; }
  bool done() const { return at_ == history_.size(); }

  /// A segment that was not handed out next had failed: what follows is the release of cached memory, or an oom.
  std::optional<std::int64_t> take(std::int64_t size) {
    if (!next_is(TraceAction::segment_alloc)) return std::nullopt;
    return consume(TraceAction::segment_alloc, history_[at_].address, size);
  }
  void give_back(std::int64_t address, std::int64_t size) { consume(TraceAction::segment_free, address, size); }
  /// Where an address range lies shows in the first page that is mapped in it; until then it lies above all others.
  std::int64_t reserve(std::int64_t) { return unknown + unknown_ranges_++; }
  void unreserve(std::int64_t, std::int64_t) {}
  std::optional<std::int64_t> map(std::int64_t address, std::int64_t size) {
    if (!next_is(TraceAction::segment_map)) return std::nullopt;
    return consume(TraceAction::segment_map, address < unknown ? address : history_[at_].address, size);
  }
  void unmap(std::int64_t address, std::int64_t size) { consume(TraceAction::segment_unmap, address, size); }
  void adopt(std::span<const Segment>) {}
  void clear() {}

  std::vector<std::int32_t> synchronize(const Heap& h) {
    std::vector<std::int32_t> order, waiting = h.awaiting;
    for (; next_is(TraceAction::free_completed); ++at_) {
      const auto completes = [&](std::int32_t i) { return h.at(i).address == history_[at_].address; };
      const auto i = std::find_if(waiting.begin(), waiting.end(), completes);
      if (i == waiting.end()) break;  // of a block that does not wait, or no longer
      order.push_back(*i);
      waiting.erase(i);
    }
    if (!waiting.empty())
      throw Error("event " + std::to_string(at_), "blocks that await their free are not completed",
                  "the allocator waits for all streams here");
    return order;
  }

 private:
  bool next_is(TraceAction a) const { return at_ < history_.size() && history_[at_].action == a; }

  std::int64_t consume(TraceAction action, std::int64_t address, std::int64_t size) {
    const auto call = [](std::string_view what, std::int64_t where, std::int64_t bytes) {
      return std::string(what) + " of " + std::to_string(bytes) + " bytes at " + std::to_string(where);
    };
    if (!next_is(action) || history_[at_].address != address || history_[at_].size != Bytes(size)) {
      const auto found = done() ? "the end of its call"
                                : call(name(history_[at_].action), history_[at_].address, history_[at_].size.value());
      throw Error("event " + std::to_string(at_),
                  "is " + found + " where the allocator makes a " + call(name(action), address, size),
                  "check the settings and that no event is missing");
    }
    return history_[at_++].address;
  }

  static constexpr std::int64_t unknown = std::int64_t{1} << 62;
  std::span<const TraceEvent> history_;
  std::size_t at_ = 0;
  std::int64_t unknown_ranges_ = 0;
};

}  // namespace vlmest::allocator
