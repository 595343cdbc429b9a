// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/memory_snapshot.hpp>

/// The oracle: torch's rules once more, with nothing but lists that are searched from end to end. A chain is a segment
/// or the address range of an expandable one, its pieces in order of address. Blocks are named by their address.
namespace slow {

using namespace vlmest;
using namespace vlmest::allocator;
using Int = std::int64_t;
constexpr Int mib = 1048576;

struct Piece {
  Int address, size, requested = 0;
  BlockState state = BlockState::cached;
  Int born = 0;
};

struct Chain {
  bool expandable, small;
  Stream stream;
  Int base, length, page;
  std::vector<Piece> pieces;
};

struct Allocator {
  AllocatorConfig c;
  std::list<Chain> chains;
  std::set<std::pair<Int, Stream>> uses;
  std::vector<Int> awaiting;
  Int allocated = 0, reserved = 0, peak_allocated = 0, peak_reserved = 0, used = 0;
  Int searches[2] = {0, 0};
  std::vector<TraceEvent> history;  ///< as torch records it

  void record(TraceAction action, Int address, Int size, Stream stream) {
    history.push_back({action, address, Bytes(size), stream});
  }

  struct At {
    Chain* chain = nullptr;
    std::size_t i = 0;
    explicit operator bool() const { return chain != nullptr; }
    Piece& operator*() const { return chain->pieces[i]; }
    Piece* operator->() const { return &chain->pieces[i]; }
    bool whole() const { return chain->pieces.size() == 1; }
  };

  bool collects() const { return c.memory_fraction < 1 && c.garbage_collection_threshold > 0; }
  std::optional<Int> allowed() const {
    if (c.memory_fraction >= 1) return std::nullopt;
    return static_cast<Int>(c.memory_fraction * static_cast<double>(c.total_memory.value()));
  }
  Int round(Int n) const {
    if (n < 512) return 512;
    int log = 0;
    while ((n >> log) > 1) ++log;
    const Int divisions = c.roundup_power2_divisions[static_cast<std::size_t>(std::min(std::max(log - 20, 0), 15))];
    if (divisions <= 1 || n <= 512 * divisions) return (n + 511) / 512 * 512;
    const Int step = (Int{1} << log) / divisions;
    return n % step == 0 ? n : n / step * step + step;
  }
  Int segment_bytes(Int size) const {
    if (size <= mib) return 2 * mib;
    if (size < 10 * mib) return c.large_segment_size.value();
    return (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
  }

  /// The cached pieces of a stream and pool in order of size and address.
  std::vector<At> cached(bool small, Stream stream) {
    std::vector<At> r;
    for (auto& chain : chains)
      for (std::size_t i = 0; i < chain.pieces.size(); ++i)
        if (chain.small == small && chain.stream == stream && chain.pieces[i].state == BlockState::cached)
          r.push_back({&chain, i});
    std::sort(r.begin(), r.end(), [](const At& a, const At& b) {
      return a->size != b->size ? a->size < b->size : a->address < b->address;
    });
    return r;
  }
  std::vector<Int> addresses(bool small) {  // of all streams
    std::set<std::uint64_t> streams;
    for (auto& chain : chains) streams.insert(static_cast<std::uint64_t>(chain.stream));
    std::vector<Int> r;
    for (auto s : streams)
      for (auto& p : cached(small, static_cast<Stream>(s))) r.push_back(p->address);
    return r;
  }
  At find(Int address) {
    for (auto& chain : chains)
      for (std::size_t i = 0; i < chain.pieces.size(); ++i)
        if (chain.pieces[i].address == address) return {&chain, i};
    return {};
  }

  /// The lowest free stretch of addresses.
  Int place(Int size, bool expandable) const {
    Int at = expandable ? Int{1} << 62 : 0;
    std::map<Int, Int> taken;
    for (const auto& chain : chains)
      if (chain.expandable == expandable) taken[chain.base] = chain.length;
    for (const auto& [base, length] : taken) {
      if (base - at >= size) break;
      at = base + length;
    }
    return at;
  }

  At merge(At p) {  // with neighbours in the same state; the piece itself stays itself
    auto& all = p.chain->pieces;
    if (p.i + 1 < all.size() && all[p.i + 1].state == p->state) {
      p->size += all[p.i + 1].size;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(p.i) + 1);
    }
    if (p.i > 0 && all[p.i - 1].state == p->state) {
      p->size += all[p.i - 1].size;
      p->address = all[p.i - 1].address;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(p.i) - 1);
      --p.i;
    }
    return p;
  }

  At search(Int size, bool small, Stream stream) {
    auto all = cached(small, stream);
    auto it = std::find_if(all.begin(), all.end(), [&](const At& p) { return p->size >= size; });
    if (it == all.end()) return {};
    if (it->chain->expandable && c.expandable_segments) {
      const auto reach = [](const At& p) {
        const auto& pieces = p.chain->pieces;
        const bool grows = p.i + 1 < pieces.size() && pieces[p.i + 1].state == BlockState::unmapped;
        return p->size + (grows ? pieces[p.i + 1].size : 0);
      };
      while (it->chain->expandable && it + 1 != all.end() && reach(*(it + 1)) < reach(*it)) ++it;
    }
    const auto limit = c.max_split_size.value();
    if (size < limit && (*it)->size >= limit) return {};
    if (size >= limit && (*it)->size >= size + c.max_non_split_rounding.value()) return {};
    return *it;
  }

  void reserve(Int bytes) { used += bytes, peak_reserved = std::max(peak_reserved, reserved += bytes); }

  bool map(At p, Int size, At& out) {
    const Int bytes = (size + p.chain->page - 1) / p.chain->page * p.chain->page;
    if (used + bytes > c.capacity.value()) return false;
    const Int address = p->address;
    if (bytes < p->size) {
      Piece rest{p->address + bytes, p->size - bytes, 0, BlockState::unmapped, 0};
      p->size = bytes;
      p.chain->pieces.insert(p.chain->pieces.begin() + static_cast<std::ptrdiff_t>(p.i) + 1, rest);
    }
    p->state = BlockState::cached;
    out = merge(p);
    out->born = searches[p.chain->small];
    reserve(bytes);
    record(TraceAction::segment_map, address, bytes, p.chain->stream);
    return true;
  }

  At expand(Int size, bool small, Stream stream) {
    const auto free = [](const Piece& p) { return p.state == BlockState::cached || p.state == BlockState::unmapped; };
    std::vector<At> holes;
    for (auto& chain : chains)
      for (std::size_t i = 0; i < chain.pieces.size(); ++i)
        if (chain.small == small && chain.stream == stream && chain.pieces[i].state == BlockState::unmapped)
          holes.push_back({&chain, i});
    std::sort(holes.begin(), holes.end(), [](const At& a, const At& b) { return a->address < b->address; });
    At p;
    for (auto hole : holes) {
      if (hole.i > 0 && free(hole.chain->pieces[hole.i - 1])) --hole.i;
      Int room = 0;
      for (auto i = hole.i; i < hole.chain->pieces.size() && free(hole.chain->pieces[i]); ++i)
        room += hole.chain->pieces[i].size;
      if (room >= size) {
        p = hole;
        break;
      }
    }
    if (!p) {
      const Int page = small ? 2 * mib : c.large_segment_size.value();
      const Int total = c.total_memory.value() + c.total_memory.value() / 8;
      const Int length = (total + page - 1) / page * page;
      const Int base = place(length, true);
      chains.push_back({true, small, stream, base, length, page, {{base, length, 0, BlockState::unmapped, 0}}});
      p = {&chains.back(), 0};
    }
    if (p->state == BlockState::unmapped && !map(p, std::min(p->size, size), p)) return {};
    while (p->size < size) {
      At next{p.chain, p.i + 1};
      if (!map(next, std::min(size - p->size, next->size), p)) return {};
    }
    return p;
  }

  At new_memory(Int size, bool small, Stream stream) {
    const Int bytes = segment_bytes(size);
    if (allowed() && reserved + bytes > *allowed()) return {};
    if (c.expandable_segments) return expand(size, small, stream);
    if (used + bytes > c.capacity.value()) return {};
    const Int base = place(bytes, false);
    chains.push_back({false, small, stream, base, bytes, 0, {{base, bytes, 0, BlockState::cached, 0}}});
    reserve(bytes);
    record(TraceAction::segment_alloc, base, bytes, stream);
    return {&chains.back(), 0};
  }

  void drop(Int address) {
    record(TraceAction::segment_free, address, find(address)->size, find(address).chain->stream);
    reserved -= find(address)->size, used -= find(address)->size;
    chains.remove_if([&](const Chain& chain) { return chain.base == address; });
  }
  void unmap(Int address) {
    auto p = find(address);
    const auto& chain = *p.chain;
    const Int first = (p->address - chain.base + chain.page - 1) / chain.page * chain.page + chain.base;
    const Int last = (p->address + p->size - chain.base) / chain.page * chain.page + chain.base;
    if (first >= last) return;
    Piece before{p->address, first - p->address}, behind{last, p->address + p->size - last};
    before.born = behind.born = searches[chain.small];
    p->address = first, p->size = last - first, p->state = BlockState::unmapped;
    auto& all = p.chain->pieces;
    if (behind.size > 0) all.insert(all.begin() + static_cast<std::ptrdiff_t>(p.i) + 1, behind);
    if (before.size > 0) all.insert(all.begin() + static_cast<std::ptrdiff_t>(p.i++), before);
    p = merge(p);
    reserved -= last - first, used -= last - first;
    record(TraceAction::segment_unmap, first, last - first, p.chain->stream);
    if (p.whole()) chains.remove_if([&](const Chain& x) { return &x == p.chain; });
  }
  void release_all() {
    forget(std::nullopt);
    for (auto address : std::exchange(awaiting, {})) finish(address);
    for (bool small : {false, true}) {
      const auto all = addresses(small);
      for (auto address : all)
        if (!find(address).chain->expandable && find(address).whole()) drop(address);
      for (auto address : all)
        if (auto p = find(address); p && p.chain->expandable && p->state == BlockState::cached) unmap(address);
    }
  }
  bool release_oversize(Int size, bool small, Stream stream) {
    const Int limit = c.max_split_size.value();
    if (limit == no_limit) return false;
    const Int key = std::max(size, limit);
    std::vector<Int> below;
    for (auto& p : cached(small, stream)) {
      if (p->size >= key) {
        if (p.chain->expandable) break;
        drop(p->address);
        return true;
      }
      below.push_back(p->address);
    }
    Int sum = 0;
    for (auto a = below.rbegin(); a != below.rend() && sum < key && find(*a)->size >= limit; ++a) {
      if (find(*a).chain->expandable) continue;
      sum += find(*a)->size;
      drop(*a);
    }
    return sum >= key;
  }
  void collect() {
    const auto threshold = static_cast<Int>(c.garbage_collection_threshold * static_cast<double>(*allowed()));
    if (reserved <= threshold) return;
    Int reclaimed = 0, age = 0, count = 0;
    const Int target = reserved - threshold;
    const auto age_of = [&](const At& p) { return searches[0] - p->born; };
    for (auto a : addresses(false))
      if (find(a).whole()) age += age_of(find(a)), ++count;
    for (bool freed = true; reclaimed < target && freed && count > 0;) {
      const double mean = static_cast<double>(age) / static_cast<double>(count);
      freed = false;
      for (auto a : addresses(false)) {
        auto p = find(a);
        if (!p.whole() || p.chain->expandable || static_cast<double>(age_of(p)) < mean) continue;
        freed = true, reclaimed += p->size, age -= age_of(p), --count;
        drop(a);
      }
    }
  }

  std::optional<Int> malloc(Int asked, Stream stream) {
    const Int size = round(asked);
    const bool small = size <= mib;
    if (collects()) ++searches[small];
    auto p = search(size, small, stream);
    if (!p) {
      if (collects()) collect();
      if (!(p = new_memory(size, small, stream)) && release_oversize(size, small, stream))
        p = new_memory(size, small, stream);
      if (!p) {
        release_all();
        p = new_memory(size, small, stream);
      }
    }
    if (!p) {
      record(TraceAction::oom, 0, size, stream);
      return std::nullopt;
    }
    const Int rest = p->size - size;
    const bool split = small || c.expandable_segments ? rest >= 512 : size < c.max_split_size.value() && rest > mib;
    if (split) {
      Piece front{p->address, size};
      p->address += size, p->size = rest, p->born = searches[small];
      p.chain->pieces.insert(p.chain->pieces.begin() + static_cast<std::ptrdiff_t>(p.i), front);
    }
    p->state = BlockState::allocated, p->requested = asked;
    peak_allocated = std::max(peak_allocated, allocated += p->size);
    record(TraceAction::alloc, p->address, asked, stream);
    return p->address;
  }

  void finish(Int address) {
    auto p = find(address);
    record(TraceAction::free_completed, address, p->requested, p.chain->stream);
    p->state = BlockState::cached;
    p = merge(p);
    p->born = searches[p.chain->small];
  }
  bool used_elsewhere(Int address) const {
    return std::any_of(uses.begin(), uses.end(), [&](const auto& u) { return u.first == address; });
  }
  void free(Int address) {
    allocated -= find(address)->size;
    record(TraceAction::free_requested, address, find(address)->requested, find(address).chain->stream);
    if (!used_elsewhere(address)) return finish(address);
    find(address)->state = BlockState::awaiting;
    awaiting.push_back(address);
  }
  void record_stream(Int address, Stream stream) {
    if (find(address).chain->stream != stream) uses.insert({address, stream});
  }
  void forget(std::optional<Stream> stream) {
    for (auto u = uses.begin(); u != uses.end();)
      u = (!stream || u->second == *stream) && find(u->first)->state == BlockState::awaiting ? uses.erase(u) : ++u;
  }
  void synchronize(Stream stream) {
    forget(stream);
    for (auto address : std::exchange(awaiting, {})) {
      if (used_elsewhere(address))
        awaiting.push_back(address);
      else
        finish(address);
    }
  }

  std::vector<Segment> dump() const {
    std::vector<Segment> out;
    for (const auto& chain : chains) {
      bool open = false;
      for (const auto& p : chain.pieces) {
        if (p.state == BlockState::unmapped) {
          open = false;
          continue;
        }
        if (!open)
          out.push_back(
              {p.address, Bytes(), chain.small ? Pool::small : Pool::large, chain.stream, chain.expandable, {}});
        open = true;
        out.back().size += Bytes(p.size);
        out.back().blocks.push_back({p.address, Bytes(p.size), Bytes(p.requested), p.state});
      }
    }
    std::sort(out.begin(), out.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
    return out;
  }
  Int releasable() const {
    Int sum = 0;
    for (const auto& chain : chains)
      for (const auto& p : chain.pieces) {
        if (p.state != BlockState::cached) continue;
        if (!chain.expandable)
          sum += chain.pieces.size() == 1 ? p.size : 0;
        else
          for (Int page = 0; page < chain.length; page += chain.page)  // page by page
            sum +=
                chain.base + page >= p.address && chain.base + page + chain.page <= p.address + p.size ? chain.page : 0;
      }
    return sum;
  }
};

}  // namespace slow
