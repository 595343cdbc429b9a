// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <unordered_map>

#include <vlmest/report/live_tensor.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE DescribedTensor describe(const Graph& g, const LiveTensor& t) {
  DescribedTensor d{.name = name_of(g, t), .scope = path(g, scope_of(g, t)), .bytes = t.bytes};
  d.role = role_of(g, t);
  if (t.tensor == none) {
    d.shape = Shape{t.bytes.value()};
    d.dtype = "uint8";
    return d;
  }
  const Tensor& x = g.tensor(t.tensor);
  d.shape = x.shape;
  d.dtype = name(x.dtype);
  return d;
}

VLMEST_INLINE std::vector<DescribedTensor> largest(const Graph& g, const std::vector<LiveTensor>& all,
                                                   std::size_t top) {
  std::vector<DescribedTensor> r;
  Bytes rest{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < top)
      r.push_back(describe(g, all[i]));
    else
      rest += all[i].bytes;
  }
  if (rest > Bytes{}) r.push_back({.name = "other", .shape = Shape{}, .dtype = "", .bytes = rest});
  return r;
}

VLMEST_INLINE std::vector<LiveTensor> by_bytes(const std::vector<LiveTensor>& all) {
  std::unordered_map<std::int64_t, std::size_t> place;  // of the next entry of a size; first, how many there are
  std::vector<std::size_t*> place_of;
  place_of.reserve(all.size());
  for (const LiveTensor& t : all) {
    std::size_t& count = place[t.bytes.value()];
    ++count;
    place_of.push_back(&count);
  }
  std::vector<std::int64_t> sizes;
  sizes.reserve(place.size());
  for (const auto& [bytes, count] : place) sizes.push_back(bytes);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::size_t next = 0;
  for (const std::int64_t bytes : sizes) next += std::exchange(place[bytes], next);
  std::vector<LiveTensor> r(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) r[(*place_of[i])++] = all[i];
  return r;
}

VLMEST_INLINE std::vector<std::size_t> alive_at_peak(const Timeline& timeline, const allocator::PhaseMemory& m) {
  std::vector<std::size_t> r;
  const auto storages = timeline.storages();
  r.reserve(storages.size() / 2);
  for (std::size_t i = 0; i < storages.size(); ++i)
    if (alive(storages[i], m.node, m.turn)) r.push_back(i);
  return r;
}

VLMEST_INLINE std::vector<LiveTensor> live_tensors(const Timeline& timeline, std::span<const std::size_t> alive,
                                                   const allocator::Process& process, const allocator::PhaseMemory& m) {
  std::vector<LiveTensor> r;
  r.reserve(alive.size() + 2);
  for (const std::size_t i : alive)
    if (const Bytes bytes = process.occupied(i); bytes > Bytes{})
      r.push_back(live_tensor(timeline.storages()[i], bytes));
  if (process.library_workspaces() > Bytes{})
    r.push_back({.label = "cuBLAS workspaces", .bytes = process.library_workspaces()});
  if (m.scratch > Bytes{}) r.push_back({.label = "scratch", .node = m.node, .bytes = m.scratch});
  return by_bytes(r);
}

}  // namespace vlmest
