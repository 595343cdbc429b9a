// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/segment.hpp>

/// A random life of an allocator under random settings.
namespace life {

using namespace vlmest;
using namespace vlmest::allocator;
using Int = std::int64_t;
constexpr Int mib = 1048576;

struct Step {
  enum { alloc, free, record_stream, synchronize, empty_cache } kind = alloc;
  std::size_t which = 0;  ///< of the live blocks
  Stream stream = 0;
  Int bytes = 0;
};

struct Life {
  std::mt19937_64 random;
  AllocatorConfig config;
  int streams = 1;
  double small_share = 0.5;
  Int live = 60;
  std::vector<Int> usual;  ///< sizes that come again and again, as in a network, so that equal blocks meet

  Int uniform(Int lo, Int hi) { return std::uniform_int_distribution<Int>(lo, hi)(random); }
  bool chance(int percent) { return uniform(0, 99) < percent; }

  explicit Life(std::uint64_t seed) : random(seed) {
    config.expandable_segments = chance(45);
    config.total_memory = Bytes(uniform(500, 1500) * mib + uniform(0, 1) * 4096);
    if (chance(60)) config.capacity = Bytes(uniform(300, 900) * mib);
    if (chance(50)) config.memory_fraction = static_cast<double>(uniform(20, 99)) / 100;
    if (chance(60)) config.garbage_collection_threshold = static_cast<double>(uniform(10, 95)) / 100;
    if (chance(25)) config.large_segment_size = Bytes(uniform(6, 20) * 2 * mib);
    config.max_non_split_rounding = config.large_segment_size;
    if (chance(45)) config.max_split_size = config.large_segment_size + Bytes(uniform(0, 60) * mib);
    if (chance(25)) config.max_non_split_rounding += Bytes(uniform(0, 40) * mib);
    if (chance(30))
      for (auto& d : config.roundup_power2_divisions) d = chance(30) ? 0 : 1 << uniform(0, 5);
    streams = static_cast<int>(uniform(1, 4));
    small_share = static_cast<double>(uniform(5, 95)) / 100;
    live = uniform(20, 150);
    for (int i = 0; i < 12; ++i) usual.push_back(Int{1} << uniform(4, 26));
  }

  Step step(std::size_t held) {
    static constexpr Stream handles[] = {0, 94'000'000'000'000, 123'323'568, -8};
    Step s;
    s.stream = handles[uniform(0, streams - 1)];
    if (held > 0) s.which = static_cast<std::size_t>(uniform(0, static_cast<Int>(held) - 1));
    const auto kind = uniform(0, 999);
    if (kind < 3) {
      s.kind = Step::empty_cache;
    } else if (kind < 30) {
      s.kind = Step::synchronize;
    } else if (kind < 90 && held > 0) {
      s.kind = Step::record_stream;
    } else if (held > 0 && static_cast<Int>(held) > uniform(0, 2 * live)) {
      s.kind = Step::free;
    } else {
      const bool small = uniform(0, 999) < static_cast<Int>(1000 * small_share);
      s.bytes = uniform(0, 2) == 0 ? usual[static_cast<std::size_t>(uniform(0, 11))]
                : small            ? uniform(1, uniform(0, 1) ? 20'000 : mib + 700)
                                   : uniform(mib - 1000, uniform(0, 1) ? 12 * mib : 90 * mib);
    }
    return s;
  }
};

}  // namespace life
