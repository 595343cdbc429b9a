// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/allocator/address_space.hpp>
#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/free_list.hpp>
#include <vlmest/allocator/segment.hpp>
#include <vlmest/unit/error.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest::allocator {

/// A segment that does not fit the capacity, after the cache was given back.
struct OutOfMemory : Error {
  Bytes tried;  ///< the segment's size: what torch's message calls "tried to allocate"
  OutOfMemory(Bytes tried_, Bytes allocated, Bytes reserved)
      : Error("allocator",
              "out of memory: tried to allocate " + std::to_string(tried_.value()) + " bytes with " +
                  std::to_string(allocated.value()) + " allocated and " +
                  std::to_string(reserved.value() - allocated.value()) + " reserved but unallocated",
              "raise the capacity or ask for less"),
        tried(tried_) {}
};

/// Replays PyTorch 2.11's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, DeviceCachingAllocator) for one
/// stream, byte for byte: the same rounding, best fit, splitting, coalescing and release of cached segments.
/// A value: a copy of a warmed allocator goes on from the same state.
class CachingAllocator {
 public:
  CachingAllocator() = default;
  explicit CachingAllocator(const AllocatorConfig& config) : config_(config) { check(config_); }

  const AllocatorConfig& config() const { return config_; }

  /// A block for `requested` bytes (malloc in torch). Throws OutOfMemory beyond the capacity and Error below zero.
  Block alloc(Bytes requested) {
    const auto i = place(requested);
    if (i == no_room) refuse(requested);
    return Block{i};
  }

  /// The same, but without a value where memory is short; the cache has been given back then.
  std::optional<Block> try_alloc(Bytes requested) {
    const auto i = place(requested);
    if (i == no_room) return std::nullopt;
    return Block{i};
  }

  /// Gives a block back to its pool, where it joins free neighbours (free_block and try_merge_blocks in torch).
  /// Throws Error for a block that is not allocated.
  void free(Block block) {
    if (block.index == none) return;
    const auto i = live(block);
    auto& freed = at(i);
    auto& list = free_list(freed.pool);
    allocated_ -= freed.size;
    requested_ -= freed.requested;
    const auto prev = freed.prev, next = freed.next;
    const bool joins_prev = prev != none && at(prev).state == BlockState::cached;
    const bool joins_next = next != none && at(next).state == BlockState::cached;
    if (joins_prev) {
      auto size = at(prev).size + freed.size;
      auto behind = next;
      if (joins_next) {
        size += at(next).size;
        behind = at(next).next;
        list.erase(blocks_, next);
        retire(next);
      }
      at(prev).next = behind;
      if (behind != none) at(behind).prev = prev;
      list.resize(blocks_, prev, at(prev).address, size);
      retire(i);
    } else if (joins_next) {
      at(next).prev = prev;
      if (prev != none) at(prev).next = next;
      list.resize(blocks_, next, freed.address, freed.size + at(next).size);
      retire(i);
    } else {
      freed.state = BlockState::cached;
      freed.requested = 0;
      list.insert(blocks_, i);
    }
  }

  /// torch.cuda.empty_cache(): gives back every segment that holds no allocation.
  void empty_cache() {
    for (auto pool : {Pool::large, Pool::small}) {
      for (auto i = free_list(pool).first(); i != none;) {
        const auto next = free_list(pool).after(blocks_, i);
        if (at(i).prev == none && at(i).next == none) release_segment(i);
        i = next;
      }
    }
  }

  Bytes allocated() const { return Bytes(allocated_); }  ///< torch.cuda.memory_allocated()
  Bytes reserved() const { return Bytes(reserved_); }    ///< torch.cuda.memory_reserved()
  Bytes requested() const { return Bytes(requested_); }  ///< memory_stats()["requested_bytes.all.current"]
  Bytes peak_allocated() const { return Bytes(peak_allocated_); }
  Bytes peak_reserved() const { return Bytes(peak_reserved_); }
  Bytes peak_requested() const { return Bytes(peak_requested_); }
  /// torch.cuda.reset_peak_memory_stats()
  void reset_peak() {
    peak_allocated_ = allocated_;
    peak_reserved_ = reserved_;
    peak_requested_ = requested_;
  }

  /// Bytes that an allocation occupies, an unsplit remainder included.
  Bytes block_size(Block block) const { return block.index == none ? Bytes() : Bytes(at(live(block)).size); }
  std::int64_t address(Block block) const { return at(live(block)).address; }

  /// Forgets everything but the settings; keeps the memory of its arrays.
  void clear() {
    blocks_.clear();
    for (auto& list : free_) list.clear();
    space_.clear();
    spare_ = none;
    allocated_ = reserved_ = requested_ = peak_allocated_ = peak_reserved_ = peak_requested_ = 0;
  }

  std::vector<Segment> segments() const {
    std::vector<Segment> out;
    for (const auto& head : blocks_) {
      if (head.state == BlockState::spare || head.prev != none) continue;
      Segment s{head.address, Bytes(), head.pool, {}};
      for (const auto* b = &head;; b = &at(b->next)) {
        s.size += Bytes(b->size);
        s.blocks.push_back({b->address, Bytes(b->size), Bytes(b->requested), b->state == BlockState::allocated});
        if (b->next == none) break;
      }
      out.push_back(std::move(s));
    }
    std::sort(out.begin(), out.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
    return out;
  }

 private:
  BlockRecord& at(std::int32_t i) { return blocks_[static_cast<std::size_t>(i)]; }
  const BlockRecord& at(std::int32_t i) const { return blocks_[static_cast<std::size_t>(i)]; }
  FreeList& free_list(Pool p) { return free_[static_cast<std::size_t>(p)]; }

  static constexpr std::int32_t no_room = -2;

  /// The record of a new allocation; none for 0 bytes, no_room where memory is short.
  std::int32_t place(Bytes requested) {
    const auto asked = requested.value();
    if (asked <= 0) {
      if (asked < 0) throw Error("allocator", "a request is negative", "ask for 0 bytes or more");
      return none;
    }
    if (asked >= max_request) return no_room;
    const auto size = round_size(config_, asked);
    const auto pool = size <= small_size ? Pool::small : Pool::large;
    auto i = find_cached(pool, size);
    if (i == none && (i = open_segment(pool, size)) == none) return no_room;
    if (should_split(at(i), size)) {
      i = split(i, size);
    } else {
      free_list(pool).erase(blocks_, i);
      at(i).state = BlockState::allocated;
    }
    at(i).requested = asked;
    peak_allocated_ = std::max(peak_allocated_, allocated_ += at(i).size);
    peak_requested_ = std::max(peak_requested_, requested_ += asked);
    return i;
  }

  /// The first `size` bytes of a cached block as an allocated one of their own; the rest stays cached.
  std::int32_t split(std::int32_t i, std::int64_t size) {
    const auto front = new_record();
    auto& rest = at(i);
    auto& block = at(front);
    block.address = rest.address;
    block.size = size;
    block.prev = rest.prev;
    block.next = i;
    block.state = BlockState::allocated;
    block.pool = rest.pool;
    if (rest.prev != none) at(rest.prev).next = front;
    rest.prev = front;
    free_list(rest.pool).resize(blocks_, i, rest.address + size, rest.size - size);
    return front;
  }

  std::int32_t live(Block block) const {
    if (block.index < 0 || static_cast<std::size_t>(block.index) >= blocks_.size() ||
        at(block.index).state != BlockState::allocated)
      refuse(block);
    return block.index;
  }
  // Out of line, so that what runs for every allocation stays small.
  [[noreturn]] void refuse(Bytes requested) const {
    const auto size = requested.value() >= max_request ? requested.value() : round_size(config_, requested.value());
    throw OutOfMemory(size < max_request ? Bytes(segment_size(config_, size)) : requested, allocated(), reserved());
  }
  [[noreturn]] static void refuse(Block block) {
    throw Error("allocator", "block " + std::to_string(block.index) + " is not allocated", "free a block once");
  }

  std::int32_t new_record() {
    if (spare_ != none) {
      const auto i = spare_;
      spare_ = at(i).free_next;
      return i;
    }
    blocks_.emplace_back();
    return static_cast<std::int32_t>(blocks_.size() - 1);
  }
  void retire(std::int32_t i) {
    at(i).state = BlockState::spare;
    at(i).free_next = spare_;
    spare_ = i;
  }

  /// get_free_block: best fit, which an oversize block may only be for an oversize request close to its size.
  std::int32_t find_cached(Pool pool, std::int64_t size) {
    const auto i = free_list(pool).first_at_least(blocks_, size);
    if (i == none) return none;
    const auto limit = config_.max_split_size.value();
    if (size < limit ? at(i).size >= limit : at(i).size - size >= config_.max_non_split_rounding.value()) return none;
    return i;
  }

  bool should_split(const BlockRecord& b, std::int64_t size) const {
    const auto rest = b.size - size;
    return b.pool == Pool::small ? rest >= min_block_size : size < config_.max_split_size.value() && rest > small_size;
  }

  /// The order of malloc: a new segment; else give back oversize blocks and retry; else the whole cache and retry.
  std::int32_t open_segment(Pool pool, std::int64_t size) {
    const auto bytes = segment_size(config_, size);
    const auto fits = [&] { return bytes <= config_.capacity.value() - reserved_; };
    if (!fits() && !(release_oversize(pool, size) && fits())) {
      empty_cache();
      if (!fits()) return none;
    }
    const auto address = space_.take(bytes);  // throws Overflow before reserved_, which is never above it, could
    peak_reserved_ = std::max(peak_reserved_, reserved_ += bytes);
    const auto i = new_record();
    at(i) = {address, bytes, 0, none, none, none, none, BlockState::cached, pool};
    free_list(pool).insert(blocks_, i);
    return i;
  }

  /// release_available_cached_blocks: one oversize block that is large enough, else the largest ones until their sum
  /// is.
  bool release_oversize(Pool pool, std::int64_t size) {
    const auto limit = config_.max_split_size.value();
    if (limit == no_limit) return false;
    const auto wanted = std::max(size, limit);
    if (const auto i = free_list(pool).first_at_least(blocks_, wanted); i != none) {
      release_segment(i);
      return true;
    }
    std::int64_t released = 0;
    for (auto i = free_list(pool).last(); i != none && released < wanted && at(i).size >= limit;
         i = free_list(pool).last()) {
      released += at(i).size;
      release_segment(i);
    }
    return released >= wanted;
  }

  void release_segment(std::int32_t i) {
    free_list(at(i).pool).erase(blocks_, i);
    space_.give_back(at(i).address, at(i).size);
    reserved_ -= at(i).size;
    retire(i);
  }

  AllocatorConfig config_;
  std::vector<BlockRecord> blocks_;
  std::array<FreeList, 2> free_;
  AddressSpace space_;
  std::int32_t spare_ = none;
  std::int64_t allocated_ = 0, reserved_ = 0, requested_ = 0;
  std::int64_t peak_allocated_ = 0, peak_reserved_ = 0, peak_requested_ = 0;
};

}  // namespace vlmest::allocator
