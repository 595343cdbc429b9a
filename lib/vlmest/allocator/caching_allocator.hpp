// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/allocator/choices.hpp>
#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/device_memory.hpp>
#include <vlmest/allocator/grow.hpp>
#include <vlmest/allocator/heap.hpp>
#include <vlmest/allocator/segment.hpp>
#include <vlmest/allocator/snapshot.hpp>
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

/// Replays PyTorch 2.11's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, DeviceCachingAllocator) byte for
/// byte: the same rounding, best fit, splitting, coalescing, expandable segments, pools per stream and release of
/// cached memory. CUDA graphs' private pools are not modelled. The driver says where segments lie and when memory is
/// short. A value: a copy of a warmed allocator goes on from the same state.
template <class Driver>
class BasicAllocator {
 public:
  BasicAllocator() : BasicAllocator(AllocatorConfig{}) {}
  explicit BasicAllocator(const AllocatorConfig& config) : heap_(config), driver_(config) {}
  BasicAllocator(const AllocatorConfig& config, Driver driver) : heap_(config), driver_(std::move(driver)) {}

  const AllocatorConfig& config() const { return heap_.config; }

  /// A block for `requested` bytes (malloc in torch). Throws OutOfMemory beyond the capacity and Error below zero.
  Block alloc(Bytes requested, Stream stream = 0) {
    const auto i = place(requested, stream);
    if (i == no_room) refuse(requested);
    return Block{i};
  }

  /// The same, and the bytes that it occupies.
  Placed take(Bytes requested, Stream stream = 0) {
    const auto block = alloc(requested, stream);
    return {block, block.index == none ? Bytes() : Bytes(heap_.at(block.index).size)};
  }

  /// The same, but without a value where memory is short; the cache has been given back then.
  std::optional<Block> try_alloc(Bytes requested, Stream stream = 0) {
    const auto i = place(requested, stream);
    if (i == no_room) return std::nullopt;
    return Block{i};
  }

  /// Gives a block back to its pool, where it joins free neighbours. Where other streams may still use it, it stays
  /// active until they are synchronised. Throws Error for a block that is not allocated.
  void free(Block block) {
    if (block.index == none) return;
    const auto i = live(block);
    heap_.allocated -= heap_.at(i).size;
    if (!uses_.empty() && used_elsewhere(i)) [[unlikely]]
      defer(i);
    else
      heap_.complete_free(i);
  }

  /// Tensor.record_stream(): another stream uses the block too.
  void record_stream(Block block, Stream stream) {
    if (block.index == none) return;
    const auto i = live(block);
    const std::pair use{i, stream};
    if (stream != heap_.streams[heap_.at(i).pool / 2u] && std::find(uses_.begin(), uses_.end(), use) == uses_.end())
      uses_.push_back(use);
  }
  /// A stream has caught up: blocks given up that waited for nothing else are freed, as the next malloc of a process
  /// finds them (process_events).
  void synchronize(Stream stream) {
    std::erase_if(uses_, [&](const auto& use) {
      return use.second == stream && heap_.at(use.first).state == BlockState::awaiting;
    });
    auto waiting = std::exchange(heap_.awaiting, {});
    for (const auto i : waiting) used_elsewhere(i) ? heap_.awaiting.push_back(i) : heap_.complete_free(i);
  }
  /// The two halves of a free as memory snapshots record them (free_requested, free_completed).
  void request_free(Block block) {
    const auto i = live(block);
    heap_.allocated -= heap_.at(i).size;
    defer(i);
  }
  void complete_free(Block block) {
    const auto waiting = std::find(heap_.awaiting.begin(), heap_.awaiting.end(), block.index);
    if (waiting == heap_.awaiting.end()) refuse(block);
    heap_.awaiting.erase(waiting);
    heap_.complete_free(block.index);
  }

  /// torch.cuda.empty_cache(): waits for all streams, then gives back all memory that holds no allocation.
  void empty_cache() {
    choices_.emptied();
    release_cached(heap_, driver_);
    uses_done();
  }

  Bytes allocated() const { return Bytes(heap_.allocated); }  ///< torch.cuda.memory_allocated()
  Bytes active() const { return Bytes(heap_.active); }        ///< with blocks that await their free
  Bytes reserved() const { return Bytes(heap_.reserved); }    ///< torch.cuda.memory_reserved()
  Bytes requested() const { return Bytes(heap_.requested); }  ///< memory_stats()["requested_bytes.all.current"]
  /// How often no cached block fitted: in between, memory was neither opened nor, but by empty_cache(), given back.
  std::int64_t growths() const { return heap_.growths; }

  /// From here on it notes what it chooses, until would_choose_again() is asked.
  void note_choices() { choices_.begin(heap_); }
  /// Whether the requests and frees since note_choices() would get the same blocks and open no segment from a state in
  /// which the same blocks are live as then and those segments are cached that were opened since. It may say no where
  /// they would.
  bool would_choose_again() { return choices_.end(heap_) && uses_.empty(); }
  Bytes peak_allocated() const { return Bytes(heap_.peak_allocated); }
  Bytes peak_reserved() const { return Bytes(heap_.peak_reserved); }
  Bytes peak_requested() const { return Bytes(heap_.peak_requested); }
  /// torch.cuda.reset_peak_memory_stats()
  void reset_peak() {
    heap_.peak_allocated = heap_.allocated;
    heap_.peak_reserved = heap_.reserved;
    heap_.peak_requested = heap_.requested;
  }

  Fragmentation fragmentation() const {
    std::int64_t largest = 0;
    for (const auto& list : heap_.cached)
      if (const auto i = list.last(heap_.blocks.data()); i != none) largest = std::max(largest, heap_.at(i).size);
    return {reserved(), Bytes(heap_.releasable), Bytes(heap_.reserved - heap_.active - heap_.releasable),
            Bytes(largest)};
  }

  /// Bytes that an allocation occupies, an unsplit remainder included.
  Bytes block_size(Block block) const { return block.index == none ? Bytes() : Bytes(heap_.at(live(block)).size); }
  std::int64_t address(Block block) const { return heap_.at(live(block)).address; }
  /// Also of a block that awaits its free.
  std::int64_t address_of(Block block) const { return heap_.at(block.index).address; }

  /// Forgets everything but the settings; keeps the memory of its arrays.
  void clear() {
    heap_.clear();
    driver_.clear();
    uses_.clear();
  }

  std::vector<Segment> segments() const { return snapshot(heap_); }
  /// Starts in a recorded state instead of an empty one, see allocator::restore.
  std::vector<Block> restore(std::span<const Segment> segments, std::span<const RangeBase> bases,
                             Bytes unmapped_requested) {
    driver_.adopt(segments);
    return allocator::restore(heap_, segments, bases, unmapped_requested.value());
  }
  Driver& driver() { return driver_; }

 private:
  static constexpr std::int32_t no_room = -2;

  /// The record of a new allocation; none for 0 bytes, no_room where memory is short.
  std::int32_t place(Bytes requested, Stream stream) {
    const auto asked = requested.value();
    if (asked <= 0 || asked >= max_request) [[unlikely]]
      return unplaced(asked);
    const auto size = round_size(heap_.config, asked);
    auto pool = static_cast<std::uint16_t>(size <= small_size ? Pool::small : Pool::large);
    if (stream != 0) [[unlikely]]  // whose pools come first
      pool = heap_.pool_of(stream, static_cast<Pool>(pool));
    auto i = find_cached(pool, size);
    const bool opens = i == none;
    if (opens) [[unlikely]] {
      i = grow(heap_, driver_, pool, size);
      if (!uses_.empty()) uses_done();
      if (i == none) return no_room;
    }
    if (choices_.noting()) choices_.note({pool, opens, size, heap_.at(i).size, heap_.at(i).address});
    i = heap_.allocate(i, size, heap_.splits(heap_.at(i), size));
    auto& block = heap_.at(i);
    block.requested = asked;
    heap_.active += block.size;
    if ((heap_.allocated += block.size) > heap_.peak_allocated) heap_.peak_allocated = heap_.allocated;
    if ((heap_.requested += asked) > heap_.peak_requested) heap_.peak_requested = heap_.requested;
    return i;
  }

  /// Of a request that no block is made for.
  static std::int32_t unplaced(std::int64_t asked) {
    if (asked < 0) throw Error("allocator", "a request is negative", "ask for 0 bytes or more");
    return asked == 0 ? none : no_room;
  }

  /// get_free_block: best fit.
  std::int32_t find_cached(std::uint16_t pool, std::int64_t size) {
    const auto i = heap_.cached[pool].first_at_least(heap_.blocks.data(), size);
    return heap_.picky ? pick(pool, size, i) : i;
  }
  /// What it does beyond that, from the best fit on: an oversize block may only be for an oversize request close to its
  /// size.
  std::int32_t pick(std::uint16_t pool, std::int64_t size, std::int32_t i) {
    if (heap_.collects) ++heap_.searches[pool & 1u];
    if (i == none) return none;
    if (heap_.at(i).range != none)
      if ((i = heap_.config.expandable_segments ? least_expandable(pool, i) : past_expandable(pool, i)) == none)
        return none;
    const auto limit = heap_.config.max_split_size.value();
    const auto found = heap_.at(i).size;
    if (size < limit ? found >= limit : found - size >= heap_.config.max_non_split_rounding.value()) return none;
    return i;
  }
  /// A block that memory can still be mapped behind counts as large as it can become, so a larger one may be preferred.
  std::int32_t least_expandable(std::uint16_t pool, std::int32_t i) {
    const auto size = [&](std::int32_t b) {
      const auto next = heap_.at(b).next;
      return heap_.at(b).size +
             (next != none && heap_.at(next).state == BlockState::unmapped ? heap_.at(next).size : 0);
    };
    while (heap_.at(i).range != none) {
      const auto next = heap_.cached[pool].after(heap_.blocks.data(), i);
      if (next == none || size(next) >= size(i)) break;
      i = next;
    }
    return i;
  }
  /// Expandable segments were turned off: they serve nothing more.
  std::int32_t past_expandable(std::uint16_t pool, std::int32_t i) {
    while (i != none && heap_.at(i).range != none) i = heap_.cached[pool].after(heap_.blocks.data(), i);
    return i;
  }

  bool used_elsewhere(std::int32_t i) const {
    return std::any_of(uses_.begin(), uses_.end(), [&](const auto& use) { return use.first == i; });
  }
  void defer(std::int32_t i) {
    heap_.at(i).state = BlockState::awaiting;
    heap_.awaiting.push_back(i);
  }
  /// Once the device was synchronised, freed blocks have no users elsewhere.
  void uses_done() {
    std::erase_if(uses_, [&](const auto& use) {
      const auto state = heap_.at(use.first).state;
      return state != BlockState::allocated && state != BlockState::awaiting;
    });
  }

  std::int32_t live(Block block) const {
    if (static_cast<std::uint32_t>(block.index) >= heap_.blocks.size() ||
        heap_.at(block.index).state != BlockState::allocated)
      refuse(block);
    return block.index;
  }
  // Out of line, so that what runs for every allocation stays small.
  [[noreturn]] void refuse(Bytes requested) const {
    const auto size =
        requested.value() >= max_request ? requested.value() : round_size(heap_.config, requested.value());
    throw OutOfMemory(size < max_request ? Bytes(segment_size(heap_.config, size)) : requested, allocated(),
                      reserved());
  }
  [[noreturn]] static void refuse(Block block) {
    throw Error("allocator", "block " + std::to_string(block.index) + " is not allocated", "free a block once");
  }

  Heap heap_;
  Driver driver_;
  std::vector<std::pair<std::int32_t, Stream>> uses_;  ///< of blocks by other streams than their own
  Choices choices_;
};

/// The allocator over a device of config.capacity bytes.
using CachingAllocator = BasicAllocator<DeviceMemory>;

}  // namespace vlmest::allocator
