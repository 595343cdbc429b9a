// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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
/// The block whose bounds moved last lies loose, in no bin: what is cut off a block and given back a moment later, as
/// most of what a model makes, then moves bounds and no chains. It is compared with what the bins offer.
class FreeList {
 public:
  using Blocks = std::vector<BlockRecord>;

  FreeList() { clear(); }

  void clear() {
    head_.fill(none);
    tail_.fill(none);
    columns_.fill(0);
    rows_ = 0;
    loose_ = none;
  }

  /// The smallest block of at least `size` bytes, at the lowest address among equals; `none` if there is none.
  std::int32_t first_at_least(const Blocks& blocks, std::int64_t size) const {
    const auto i = first_in_bins(blocks, size);
    if (loose_ == none || at(blocks, loose_).size < size) return i;
    return i == none || less(at(blocks, loose_), at(blocks, i)) ? loose_ : i;
  }

  std::int32_t first(Blocks& blocks) {
    settle(blocks);
    return first_from_row(0);
  }

  std::int32_t after(Blocks& blocks, std::int32_t i) {
    settle(blocks);
    if (at(blocks, i).free_next != none) return at(blocks, i).free_next;
    const std::size_t bin = at(blocks, i).bin;
    const auto row = bin / columns, column = bin % columns;
    const auto used = column + 1 == columns ? 0 : columns_[row] & (~std::uint64_t{0} << (column + 1));
    return used != 0 ? head_[row * columns + lowest(used)] : first_from_row(row + 1);
  }

  std::int32_t before(Blocks& blocks, std::int32_t i) {
    settle(blocks);
    if (at(blocks, i).free_prev != none) return at(blocks, i).free_prev;
    const std::size_t bin = at(blocks, i).bin;
    const auto row = bin / columns;
    auto used = columns_[row] & ((std::uint64_t{1} << (bin % columns)) - 1);
    if (used != 0) return tail_[row * columns + highest(used)];
    const auto below = rows_ & ((std::uint64_t{1} << row) - 1);
    if (below == 0) return none;
    used = columns_[highest(below)];
    return tail_[highest(below) * columns + highest(used)];
  }

  std::int32_t last(const Blocks& blocks) const {
    if (rows_ == 0) return loose_;
    const auto row = highest(rows_);
    const auto i = tail_[row * columns + highest(columns_[row])];
    return loose_ != none && less(at(blocks, i), at(blocks, loose_)) ? loose_ : i;
  }

  void insert(Blocks& blocks, std::int32_t i) { insert(blocks, i, bin_of(at(blocks, i).size)); }

  void erase(Blocks& blocks, std::int32_t i) {
    if (i == loose_) {
      loose_ = none;
      return;
    }
    const auto& block = at(blocks, i);
    const std::size_t bin = block.bin;
    (block.free_next != none ? at(blocks, block.free_next).free_prev : tail_[bin]) = block.free_prev;
    (block.free_prev != none ? at(blocks, block.free_prev).free_next : head_[bin]) = block.free_next;
    if (head_[bin] == none && (columns_[bin / columns] &= ~(std::uint64_t{1} << (bin % columns))) == 0)
      rows_ &= ~(std::uint64_t{1} << (bin / columns));
  }

  /// Moves the bounds of a listed block.
  void resize(Blocks& blocks, std::int32_t i, std::int64_t address, std::int64_t size) {
    if (i != loose_) {
      erase(blocks, i);
      settle(blocks);
      loose_ = i;
    }
    auto& block = at(blocks, i);
    block.address = address;
    block.size = size;
  }

 private:
  std::int32_t first_in_bins(const Blocks& blocks, std::int64_t size) const {
    const auto bin = bin_of(size);
    const auto row = bin / columns, column = bin % columns;
    if (row >= rows) return none;  // asked for is more than any block has: max_split_size can be
    auto used = columns_[row] & (~std::uint64_t{0} << column);
    if ((used >> column) & 1) {
      for (auto i = head_[bin]; i != none; i = at(blocks, i).free_next)
        if (at(blocks, i).size >= size) return i;
      used &= used - 1;
    }
    if (used != 0) return head_[row * columns + lowest(used)];
    return first_from_row(row + 1);
  }

  /// Puts the loose block into its bin.
  void settle(Blocks& blocks) {
    if (loose_ != none) insert(blocks, std::exchange(loose_, none));
  }
  /// Looks for the place from both ends at once: chains of equal blocks grow long (the gradients of a model), and most
  /// blocks belong near an end.
  void insert(Blocks& blocks, std::int32_t i, std::size_t bin) {
    auto& block = at(blocks, i);
    auto before = tail_[bin], behind = head_[bin];
    if (behind == none) {
      columns_[bin / columns] |= std::uint64_t{1} << (bin % columns);
      rows_ |= std::uint64_t{1} << (bin / columns);
    } else {
      while (true) {
        const auto& last = at(blocks, before);
        if (!less(block, last)) {
          behind = last.free_next;
          break;
        }
        const auto& first = at(blocks, behind);
        if (less(block, first)) {
          before = first.free_prev;
          break;
        }
        before = last.free_prev;
        behind = first.free_next;
      }
    }
    block.bin = static_cast<std::uint16_t>(bin);
    block.free_prev = before;
    block.free_next = behind;
    (behind != none ? at(blocks, behind).free_prev : tail_[bin]) = i;
    (before != none ? at(blocks, before).free_next : head_[bin]) = i;
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

  static bool less(const BlockRecord& a, const BlockRecord& b) {
    return a.size != b.size ? a.size < b.size : a.address < b.address;
  }
  static const BlockRecord& at(const Blocks& blocks, std::int32_t i) { return blocks[static_cast<std::size_t>(i)]; }
  static BlockRecord& at(Blocks& blocks, std::int32_t i) { return blocks[static_cast<std::size_t>(i)]; }

  std::int32_t first_from_row(std::size_t row) const {
    const auto used = rows_ & (~std::uint64_t{0} << row);
    if (used == 0) return none;
    const auto r = lowest(used);
    return head_[r * columns + lowest(columns_[r])];
  }

  std::array<std::int32_t, rows * columns> head_, tail_;
  std::array<std::uint64_t, rows> columns_;
  std::uint64_t rows_ = 0;
  std::int32_t loose_ = none;
};

}  // namespace vlmest::allocator
