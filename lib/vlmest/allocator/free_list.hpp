// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <vlmest/allocator/block.hpp>
#include <vlmest/allocator/config.hpp>

namespace vlmest::allocator {

/// The cached blocks of one pool in the order (size, address): what torch keeps as
/// std::set<Block*, BlockComparatorSize> (c10/cuda/CUDACachingAllocator.cpp), where best fit is a lower bound.
///
/// Instead of a tree, sizes fall into 64 bins per power of two, bins grow with the size, each bin is a short chain in
/// the same order, and bitmaps name the bins in use: the first block of the next bin in use is the best fit. This is
/// the two-level index of Masmano et al., "TLSF: a New Dynamic Memory Allocator for Real-Time Systems" (ECRTS 2004),
/// with sorted bins, so that its good fit becomes torch's exact best fit. Nothing is allocated per operation, and a
/// copy is a copy of arrays.
///
/// The block that came or whose bounds moved last lies loose, in no bin: what is cut off a block and given back a
/// moment later, as most of what a model makes, then moves bounds and no chains. It is compared with what the bins
/// offer.
class FreeList {
 public:
  FreeList() { clear(); }

  void clear() {
    columns_.fill(0);
    rows_ = 0;
    recent_ = none;
    loose_ = {};
  }

  /// The smallest block of at least `size` bytes, at the lowest address among equals; `none` if there is none.
  std::int32_t first_at_least(const BlockRecord* blocks, std::int64_t size) const {
    const auto binned = first_in_bins(blocks, size);
    Loose best{no_limit, no_limit, binned};
    if (binned != none) best = {at(blocks, binned).size, at(blocks, binned).address, binned};
    // Where nothing is loose, it has no bytes.
    return loose_.size >= size && less(loose_, best) ? loose_.index : binned;
  }

  std::int32_t first(BlockRecord* blocks) {
    settle(blocks);
    return first_from_row(0);
  }

  std::int32_t after(BlockRecord* blocks, std::int32_t i) {
    settle(blocks);
    const std::size_t bin = at(blocks, i).bin;
    if (const auto next = at(blocks, i).free_next; next != head_[bin]) return next;
    const auto row = bin / columns, column = bin % columns;
    const auto used = column + 1 == columns ? 0 : columns_[row] & (~std::uint64_t{0} << (column + 1));
    return used != 0 ? head_[row * columns + lowest(used)] : first_from_row(row + 1);
  }

  std::int32_t before(BlockRecord* blocks, std::int32_t i) {
    settle(blocks);
    const std::size_t bin = at(blocks, i).bin;
    if (i != head_[bin]) return at(blocks, i).free_prev;
    const auto row = bin / columns;
    auto used = columns_[row] & ((std::uint64_t{1} << (bin % columns)) - 1);
    if (used != 0) return tail(blocks, row * columns + highest(used));
    const auto below = rows_ & ((std::uint64_t{1} << row) - 1);
    if (below == 0) return none;
    used = columns_[highest(below)];
    return tail(blocks, highest(below) * columns + highest(used));
  }

  std::int32_t last(const BlockRecord* blocks) const {
    Loose best;
    if (rows_ != 0) {
      const auto row = highest(rows_);
      const auto i = tail(blocks, row * columns + highest(columns_[row]));
      best = {at(blocks, i).size, at(blocks, i).address, i};
    }
    return less(best, loose_) ? loose_.index : best.index;
  }

  void insert(BlockRecord* blocks, std::int32_t i) {
    settle(blocks);
    auto& block = at(blocks, i);
    loose_ = {block.size, block.address, i};
  }

  void erase(BlockRecord* blocks, std::int32_t i) {
    if (i == loose_.index)
      loose_ = {};
    else
      unchain(blocks, i);
  }

  /// Moves the bounds of a listed block.
  void resize(BlockRecord* blocks, std::int32_t i, std::int64_t address, std::int64_t size) {
    auto& block = at(blocks, i);
    if (i != loose_.index) {
      unchain(blocks, i);
      settle(blocks);
    }
    block.address = address;
    block.size = size;
    loose_ = {size, address, i};
  }

 private:
  std::int32_t first_in_bins(const BlockRecord* blocks, std::int64_t size) const {
    const auto bin = bin_of(size);
    const auto row = bin / columns, column = bin % columns;
    if (row >= rows) return none;  // asked for is more than any block has: max_split_size can be
    auto used = columns_[row] & (~std::uint64_t{0} << column);
    if ((used >> column) & 1) {
      auto i = head_[bin];
      do {
        if (at(blocks, i).size >= size) return i;
        i = at(blocks, i).free_next;
      } while (i != head_[bin]);
      used &= used - 1;
    }
    if (used != 0) return head_[row * columns + lowest(used)];
    return first_from_row(row + 1);
  }

  /// A block that is in no bin, and what it is compared by.
  struct Loose {
    std::int64_t size = 0, address = 0;
    std::int32_t index = none;
  };

  /// Puts the loose block into its bin.
  void settle(BlockRecord* blocks) {
    if (loose_.index != none) chain(blocks, std::exchange(loose_, {}).index);
  }
  void chain(BlockRecord* blocks, std::int32_t i) {
    auto& block = at(blocks, i);
    const auto bin = bin_of(block.size);
    block.bin = static_cast<std::uint16_t>(bin);
    auto& used = columns_[bin / columns];
    const auto bit = std::uint64_t{1} << (bin % columns);
    if ((used & bit) != 0) return chain_among(blocks, i, bin);
    used |= bit;
    rows_ |= std::uint64_t{1} << (bin / columns);
    head_[bin] = block.free_prev = block.free_next = recent_ = i;
  }
  /// Looks for the place from both ends and from the block that was chained last, at once: chains of equal blocks grow
  /// long (the gradients of a model, what is kept of the segments of a video), and most blocks belong near one of them.
  void chain_among(BlockRecord* blocks, std::int32_t i, std::size_t bin) {
    auto& block = at(blocks, i);
    auto behind = head_[bin], before = at(blocks, behind).free_prev;
    if (less(block, at(blocks, behind))) {
      head_[bin] = i;
    } else {
      auto near = recent_ != none && at(blocks, recent_).bin == bin ? recent_ : none;
      const bool down = near != none && less(block, at(blocks, near));
      while (true) {
        const auto& last = at(blocks, before);
        if (!less(block, last)) {
          behind = last.free_next;
          break;
        }
        before = last.free_prev;
        behind = at(blocks, behind).free_next;
        if (less(block, at(blocks, behind))) {
          before = at(blocks, behind).free_prev;
          break;
        }
        if (near == none) continue;
        const auto next = down ? at(blocks, near).free_prev : at(blocks, near).free_next;
        if (less(block, at(blocks, next)) != down) {
          before = down ? next : near;
          behind = down ? near : next;
          break;
        }
        near = next;
      }
    }
    recent_ = i;
    block.free_prev = before;
    block.free_next = behind;
    at(blocks, before).free_next = at(blocks, behind).free_prev = i;
  }
  void unchain(BlockRecord* blocks, std::int32_t i) {
    const auto& block = at(blocks, i);
    const std::size_t bin = block.bin;
    if (recent_ == i) recent_ = block.free_prev == i ? none : block.free_prev;
    if (block.free_next == i) {
      if ((columns_[bin / columns] &= ~(std::uint64_t{1} << (bin % columns))) == 0)
        rows_ &= ~(std::uint64_t{1} << (bin / columns));
      return;
    }
    at(blocks, block.free_next).free_prev = block.free_prev;
    at(blocks, block.free_prev).free_next = block.free_next;
    if (head_[bin] == i) head_[bin] = block.free_next;
  }

  static constexpr std::size_t columns = 64;
  /// Bins 0 to 127 hold that many units of 512 bytes, and then 64 bins each [2^r, 2^(r+1)) units; a merged block is at
  /// most one segment or address range, which is at most max_request + round_large < 2^61 bytes = 2^52 units.
  static constexpr std::size_t rows = 52 - 5;

  static constexpr std::size_t bin_of(std::int64_t size) {
    const auto units = static_cast<std::uint64_t>(size) / static_cast<std::uint64_t>(min_block_size);
    const auto row = static_cast<std::size_t>(std::bit_width(units | 127)) - 7;
    return row * columns + static_cast<std::size_t>(units >> row);
  }
  static std::size_t lowest(std::uint64_t bits) { return static_cast<std::size_t>(std::countr_zero(bits)); }
  static std::size_t highest(std::uint64_t bits) { return static_cast<std::size_t>(std::bit_width(bits)) - 1; }

  template <class A, class B>
  static bool less(const A& a, const B& b) {
    return a.size != b.size ? a.size < b.size : a.address < b.address;
  }
  static const BlockRecord& at(const BlockRecord* blocks, std::int32_t i) { return blocks[i]; }
  static BlockRecord& at(BlockRecord* blocks, std::int32_t i) { return blocks[i]; }

  std::int32_t tail(const BlockRecord* blocks, std::size_t bin) const { return at(blocks, head_[bin]).free_prev; }
  std::int32_t first_from_row(std::size_t row) const {
    const auto used = rows_ & (~std::uint64_t{0} << row);
    if (used == 0) return none;
    const auto r = lowest(used);
    return head_[r * columns + lowest(columns_[r])];
  }

  std::array<std::int32_t, rows * columns> head_{};  ///< of the bins in use: the first block of a ring
  std::array<std::uint64_t, rows> columns_;
  std::uint64_t rows_ = 0;
  std::int32_t recent_ = none;  ///< the block that was chained last, if it is
  Loose loose_;
};

}  // namespace vlmest::allocator
