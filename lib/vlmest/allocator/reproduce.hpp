// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include <vlmest/allocator/initial_state.hpp>

namespace vlmest::allocator {

/// A snapshot beside its replay.
struct Reproduction {
  InitialState initial;
  Replay replay;
  bool exact = false;      ///< all segments and blocks are the snapshot's
  std::string difference;  ///< the first one, else empty
};

inline std::string difference(std::span<const Segment> expected, std::span<const Segment> actual) {
  for (std::size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
    if (i >= actual.size()) return "segment at " + std::to_string(expected[i].address) + " is missing";
    if (i >= expected.size()) return "segment at " + std::to_string(actual[i].address) + " is not in the snapshot";
    const auto &e = expected[i], &a = actual[i];
    const auto where = "segment at " + std::to_string(e.address) + ": ";
    if (a.address != e.address) return where + "lies at " + std::to_string(a.address);
    if (a.size != e.size)
      return where + std::to_string(a.size.value()) + " bytes, not " + std::to_string(e.size.value());
    if (a.pool != e.pool || a.stream != e.stream || a.expandable != e.expandable) return where + "of another pool";
    for (std::size_t k = 0; k < std::max(e.blocks.size(), a.blocks.size()); ++k) {
      if (k >= e.blocks.size() || k >= a.blocks.size()) return where + "another number of blocks";
      if (a.blocks[k] != e.blocks[k])
        return where + "block " + std::to_string(k) + " of " + std::to_string(a.blocks[k].size.value()) +
               " bytes for " + std::to_string(a.blocks[k].requested.value()) + ", not " +
               std::to_string(e.blocks[k].size.value()) + " for " + std::to_string(e.blocks[k].requested.value());
    }
  }
  return {};
}

namespace undoing {

/// An allocation landed in the cached block at `placed`, and the history says that it did not fit there. Where that
/// block follows one whose unsplit rest is not known, the rest is longer: returns whether that explains it.
inline bool lengthen(Kept& kept, const MemorySnapshot& m, const InitialState& initial, const Misplaced& e) {
  for (const auto& s : initial.segments)
    for (std::size_t i = 1; i < s.blocks.size(); ++i) {
      const auto &block = s.blocks[i - 1], &rest = s.blocks[i];
      if (rest.address != e.placed || rest.active() || s.expandable || s.pool == Pool::small) continue;
      const auto extra = rest.size - e.size + Bytes(min_block_size);
      auto& length = kept[block.address];
      if (!block.active() || extra <= Bytes() || length + extra.value() > small_size) return false;
      length += extra.value();
      const auto again = initial_state(m, kept);
      return !(again.segments == initial.segments);  // where the size is known, nothing changes
    }
  return false;
}

}  // namespace undoing

/// Replays a snapshot's events from the state that they began in and compares what comes out with its segments. Throws
/// Error where the events contradict torch's rules or the segments. The events may be the last ones of a longer
/// history, if they do not begin inside a call; but garbage collection needs a whole one, and of expandable segments a
/// stream and pool may have one. Requests of blocks that were cached before the first event and never used again are
/// taken from the snapshot.
inline Reproduction reproduce(const MemorySnapshot& m) {
  Reproduction r;
  undoing::Kept kept;
  int lengthened = 0;
  for (bool done = false; !done;) {
    r.initial = initial_state(m, kept);
    try {
      r.replay = replay(m.events, m.config, r.initial);
      done = true;
    } catch (const Misplaced& e) {
      if (++lengthened > 1000 || !undoing::lengthen(kept, m, r.initial, e)) throw;
    }
  }
  std::map<std::int64_t, Segment::Piece> known;
  for (const auto& s : m.segments)
    for (const auto& b : s.blocks) known[b.address] = b;
  for (auto& s : r.replay.segments)
    for (auto& b : s.blocks)
      if (b.requested < Bytes() && known.find(b.address) != known.end()) b.requested = known[b.address].requested;
  r.difference = difference(m.segments, r.replay.segments);
  r.exact = r.difference.empty();
  return r;
}

}  // namespace vlmest::allocator
