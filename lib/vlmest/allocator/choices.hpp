// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <vlmest/allocator/heap.hpp>

namespace vlmest::allocator {

/// Which cached blocks an allocator chose for a stretch of requests, and whether it would choose the same ones if the
/// segments that it opened meanwhile had been there from the begin, cached.
///
/// Best fit takes the first block in the order (size, address) that is large enough. A further segment changes that
/// only where it is large enough and comes before the chosen block. Where a segment was opened, no cached block was
/// large enough, so that this segment is chosen unless one that was opened later comes before it.
class Choices {
 public:
  struct Choice {
    std::uint16_t pool = 0;
    bool opened = false;     ///< a segment, for this request
    std::int64_t asked = 0;  ///< the request, rounded
    std::int64_t size = 0;   ///< of the block that it was cut from
    std::int64_t address = 0;
  };

  void begin(const Heap& h) {
    all_.clear();
    noting_ = true;
    emptied_ = false;
    growths_ = h.growths;
    reserved_ = h.reserved;
  }
  bool noting() const { return noting_; }
  void note(const Choice& c) { all_.push_back(c); }
  /// The cache is given back.
  void emptied() { emptied_ = true; }
  /// Ends the stretch. Whether its choices are known to be the same once more.
  bool end(const Heap& h) {
    noting_ = false;
    std::int64_t opened = 0;
    for (const Choice& c : all_)
      if (c.opened) opened += c.size;
    // What was given back is not there a second time; what was opened is there to be given back; and blocks are
    // collected by their age.
    if (emptied_ || h.collects || h.reserved != reserved_ + opened) return false;
    return h.growths == growths_ || (!h.picky && stand());
  }

 private:
  bool stand() const {
    std::vector<Choice> later;  // segments opened behind the choice at hand, in the order of best fit
    auto c = std::find_if(all_.rbegin(), all_.rend(), [](const Choice& choice) { return choice.opened; });
    for (; c != all_.rend(); ++c) {
      const auto fit = std::lower_bound(later.begin(), later.end(), Choice{c->pool, false, 0, c->asked, 0}, earlier);
      if (fit != later.end() && fit->pool == c->pool && earlier(*fit, *c)) return false;
      if (c->opened) later.insert(std::lower_bound(later.begin(), later.end(), *c, earlier), *c);
    }
    return true;
  }
  static bool earlier(const Choice& a, const Choice& b) {
    if (a.pool != b.pool) return a.pool < b.pool;
    return a.size != b.size ? a.size < b.size : a.address < b.address;
  }

  std::vector<Choice> all_;
  bool noting_ = false, emptied_ = false;
  std::int64_t growths_ = 0, reserved_ = 0;  ///< when it began
};

}  // namespace vlmest::allocator
