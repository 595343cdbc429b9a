// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/allocator/layer_memo.hpp>
#include <vlmest/analysis/timeline.hpp>

/// What one of several ranks does with its model before the first step (RankSetUp in analysis/timeline.hpp).
namespace vlmest::allocator {

/// Buffers that are made one after the other, each of which goes when two more are to be there
/// (torch/csrc/distributed/c10d/comm.cpp, broadcast_coalesced: at most two broadcasts are in flight).
inline void send_in_turn(CachingAllocator& allocator, std::span<const Bytes> buffers) {
  constexpr std::size_t in_flight = 2;
  std::vector<Block> sent;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (i >= in_flight) allocator.free(std::exchange(sent[i - in_flight], {}));
    sent.push_back(allocator.alloc(buffers[i]));
  }
  for (const Block b : sent)
    if (b.index != none) allocator.free(b);
}

/// Weights that are loaded whole, by their tensors; empty where none is divided.
inline std::vector<char> divided_tensors(const Timeline& t, std::size_t tensors) {
  std::vector<char> r(t.set_up().divided.empty() ? 0 : tensors, 0);
  for (const auto& group : t.set_up().divided)
    for (const TensorId weight : group) r[static_cast<std::size_t>(weight)] = 1;
  return r;
}

/// Puts the parts of divided weights, which are among the first `loaded` storages, in the place of the whole ones. How
/// many bytes they are more.
inline Bytes put_parts(const Timeline& t, std::size_t loaded, HeldStorages& held, CachingAllocator& allocator) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < loaded; ++i)
    if (const Storage& s = t.storages()[i]; s.role == Role::weight && s.tensor != none) {
      const auto tensor = static_cast<std::size_t>(s.tensor);
      if (at.size() <= tensor) at.resize(tensor + 1);
      at[tensor] = i;
    }
  Bytes more{};
  std::vector<Block> whole;
  for (const std::vector<TensorId>& group : t.set_up().divided) {
    whole.clear();
    for (const TensorId weight : group) {
      const std::size_t i = at[static_cast<std::size_t>(weight)];
      const Storage& s = t.storages()[i];
      whole.push_back(std::exchange(held.blocks[i], {}));
      more -= std::exchange(held.sizes[i], {});
      if (s.bytes == Bytes{}) continue;
      const Placed placed = allocator.take(s.bytes, s.stream);
      held.blocks[i] = placed.block;
      held.sizes[i] = placed.size;
      more += placed.size;
    }
    for (const Block b : whole)
      if (b.index != none) allocator.free(b);
  }
  return more;
}

}  // namespace vlmest::allocator
