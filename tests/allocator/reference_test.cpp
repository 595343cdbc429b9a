// SPDX-License-Identifier: Apache-2.0
// The allocator against a slow one that follows the text of torch's rules with the containers that torch uses.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

namespace {
using namespace vlmest;
using namespace vlmest::allocator;

struct SlowBlock {
  std::int64_t address, size, requested = 0;
  bool allocated = false, small;
  SlowBlock *prev = nullptr, *next = nullptr;
};

struct BySize {
  bool operator()(const SlowBlock* a, const SlowBlock* b) const {
    return std::tie(a->size, a->address) < std::tie(b->size, b->address);
  }
};

struct SlowAllocator {
  std::int64_t capacity = INT64_MAX, max_split = INT64_MAX, divisions = 0;
  std::int64_t allocated = 0, reserved = 0, requested = 0, peak_allocated = 0, peak_reserved = 0;
  std::set<SlowBlock*, BySize> pool[2];           // small, large
  std::map<std::int64_t, std::int64_t> segments;  // address -> size
  std::map<std::int64_t, std::unique_ptr<SlowBlock>> all;

  static constexpr std::int64_t mib = 1048576;

  std::int64_t round(std::int64_t n) const {
    if (n < 512) return 512;
    if (divisions > 1 && n > 512 * divisions) {
      std::int64_t power = 1;
      while (power * 2 <= n) power *= 2;
      return (n - 1) / (power / divisions) * (power / divisions) + power / divisions;
    }
    return (n - 1) / 512 * 512 + 512;
  }

  std::int64_t place(std::int64_t size) const {
    std::int64_t at = 0;
    for (const auto& [address, length] : segments) {
      if (address - at >= size) break;
      at = address + length;
    }
    return at;
  }

  void release(SlowBlock* b) {
    pool[b->small ? 0 : 1].erase(b);
    segments.erase(b->address);
    reserved -= b->size;
    all.erase(b->address);
  }
  void release_all() {
    for (auto& p : pool)
      for (auto it = p.begin(); it != p.end();) {
        auto* b = *it++;
        if (!b->prev && !b->next) release(b);
      }
  }
  bool release_oversize(std::set<SlowBlock*, BySize>& p, std::int64_t size) {
    if (max_split == INT64_MAX) return false;
    SlowBlock key{0, std::max(size, max_split), 0, false, false};
    if (auto it = p.lower_bound(&key); it != p.end()) return release(*it), true;
    std::int64_t sum = 0;
    while (sum < key.size && !p.empty() && (*p.rbegin())->size >= max_split) {
      sum += (*p.rbegin())->size;
      release(*p.rbegin());
    }
    return sum >= key.size;
  }

  SlowBlock* malloc(std::int64_t asked) {
    const auto size = round(asked);
    const bool small = size <= mib;
    auto& p = pool[small ? 0 : 1];
    SlowBlock key{0, size, 0, false, small};
    auto it = p.lower_bound(&key);
    SlowBlock* b = nullptr;
    if (it != p.end() && !(size < max_split && (*it)->size >= max_split) &&
        !(size >= max_split && (*it)->size >= size + 20 * mib)) {
      b = *it;
      p.erase(it);
    } else {
      const auto bytes = small ? 2 * mib : size < 10 * mib ? 20 * mib : (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
      const auto fits = [&] { return reserved + bytes <= capacity; };
      if (!(fits() || (release_oversize(p, size) && fits()) || (release_all(), fits()))) return nullptr;
      reserved += bytes;
      const auto address = place(bytes);
      segments[address] = bytes;
      b = (all[address] = std::make_unique<SlowBlock>(SlowBlock{address, bytes, 0, false, small})).get();
    }
    const auto remaining = b->size - size;
    if (small ? remaining >= 512 : (size < max_split && remaining > mib)) {
      const auto address = b->address + size;
      auto* rest = (all[address] = std::make_unique<SlowBlock>(SlowBlock{address, remaining, 0, false, small})).get();
      rest->prev = b;
      rest->next = b->next;
      if (rest->next) rest->next->prev = rest;
      b->next = rest;
      b->size = size;
      p.insert(rest);
    }
    b->allocated = true;
    b->requested = asked;
    allocated += b->size;
    requested += asked;
    peak_allocated = std::max(peak_allocated, allocated);
    peak_reserved = std::max(peak_reserved, reserved);
    return b;
  }

  void free(SlowBlock* b) {
    auto& p = pool[b->small ? 0 : 1];
    allocated -= b->size;
    requested -= b->requested;
    b->allocated = false;
    b->requested = 0;
    auto swallow = [&](SlowBlock* left, SlowBlock* right) {
      left->size += right->size;
      left->next = right->next;
      if (left->next) left->next->prev = left;
      all.erase(right->address);
    };
    if (b->next && !b->next->allocated) p.erase(b->next), swallow(b, b->next);
    if (b->prev && !b->prev->allocated) {
      b = b->prev;
      p.erase(b);
      swallow(b, b->next);
    }
    p.insert(b);
  }

  std::vector<Segment> dump() const {
    std::vector<Segment> out;
    for (const auto& [address, size] : segments) {
      const auto* b = all.at(address).get();
      Segment s{address, Bytes(size), b->small ? Pool::small : Pool::large, {}};
      for (; b; b = b->next) s.blocks.push_back({b->address, Bytes(b->size), Bytes(b->requested), b->allocated});
      out.push_back(s);
    }
    return out;
  }
};

struct Mix {
  const char* name;
  AllocatorConfig config;
  double small_share;
  std::size_t live;
};

class Reference : public testing::TestWithParam<int> {};

TEST_P(Reference, SameAfterEveryEvent) {
  constexpr std::int64_t mib = 1 << 20;
  AllocatorConfig steps;
  steps.roundup_power2_divisions.fill(8);
  const Mix mixes[] = {
      {"defaults", {}, 0.5, 60},
      {"many small", {}, 0.97, 600},
      {"large", {}, 0.05, 40},
      {"capacity", {.capacity = Bytes(700 * mib)}, 0.4, 60},
      {"max_split_size", {.max_split_size = Bytes(48 * mib)}, 0.3, 40},
      {"max_split_size in capacity", {.capacity = Bytes(700 * mib), .max_split_size = Bytes(48 * mib)}, 0.2, 40},
      {"roundup_power2_divisions", steps, 0.5, 60},
  };
  int failures = 0;
  for (const auto& mix : mixes) {
    SCOPED_TRACE(mix.name);
    std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
    const auto uniform = [&](std::int64_t lo, std::int64_t hi) {
      return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
    };
    // A few sizes come again and again, as in a network, so that cached blocks of equal size meet.
    std::vector<std::int64_t> usual;
    for (int i = 0; i < 12; ++i) usual.push_back(uniform(1, 1) << uniform(4, 26));
    CachingAllocator fast(mix.config);
    SlowAllocator slow;
    slow.capacity = mix.config.capacity.value();
    slow.max_split = mix.config.max_split_size.value();
    slow.divisions = mix.config.roundup_power2_divisions[0];
    std::vector<std::pair<Block, std::int64_t>> live;  // block, address
    for (int event = 0; event < 4000; ++event) {
      const bool full = live.size() > static_cast<std::size_t>(uniform(0, 2 * static_cast<std::int64_t>(mix.live)));
      if (!live.empty() && full) {
        const auto k = static_cast<std::size_t>(uniform(0, static_cast<std::int64_t>(live.size()) - 1));
        fast.free(live[k].first);
        slow.free(slow.all.at(live[k].second).get());
        live[k] = live.back();
        live.pop_back();
      } else if (uniform(0, 999) == 0) {
        fast.empty_cache();
        slow.release_all();
      } else {
        const auto kind = static_cast<double>(uniform(0, 999)) / 1000;
        const auto bytes = uniform(0, 2) == 0       ? usual[static_cast<std::size_t>(uniform(0, 11))]
                           : kind < mix.small_share ? uniform(1, uniform(0, 1) ? 20'000 : mib + 700)
                                                    : uniform(mib - 1000, uniform(0, 1) ? 12 * mib : 90 * mib);
        const auto f = fast.try_alloc(Bytes(bytes));
        const auto* s = slow.malloc(bytes);
        ASSERT_EQ(f.has_value(), s != nullptr);
        failures += s == nullptr;
        if (s != nullptr) {
          ASSERT_EQ(fast.address(*f), s->address);
          ASSERT_EQ(fast.block_size(*f), Bytes(s->size));
          live.emplace_back(*f, s->address);
        }
      }
      ASSERT_EQ(fast.allocated(), Bytes(slow.allocated)) << "event " << event;
      ASSERT_EQ(fast.reserved(), Bytes(slow.reserved));
      ASSERT_EQ(fast.requested(), Bytes(slow.requested));
      ASSERT_EQ(fast.peak_allocated(), Bytes(slow.peak_allocated));
      ASSERT_EQ(fast.peak_reserved(), Bytes(slow.peak_reserved));
      if (event % 100 == 0) {
        ASSERT_EQ(fast.segments(), slow.dump());
      }
    }
    for (const auto& [block, address] : live) fast.free(block);
    fast.empty_cache();
    EXPECT_EQ(fast.reserved(), Bytes(0));
  }
  EXPECT_GT(failures, 0) << "the capacity was never reached";
}

INSTANTIATE_TEST_SUITE_P(Seeds, Reference, testing::Range(1, 9));
}  // namespace
