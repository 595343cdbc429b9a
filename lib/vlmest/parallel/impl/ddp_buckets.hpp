// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/parameter_order.hpp>
#include <vlmest/parallel/ddp_buckets.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::parallel {

namespace ddp {

inline constexpr Bytes first_bucket(std::int64_t{1} << 20), bucket_cap(std::int64_t{25} << 20);
inline constexpr Bytes broadcast(std::int64_t{250} << 20);

/// When the gradient of each weight comes for the first time on this rank; none where it has none.
inline std::vector<NodeId> first_gradients(const Graph& g, const Timeline& t) {
  std::vector<NodeId> r(g.tensors.size(), none);
  for (const Storage& s : t.storages())
    if (s.role == Role::gradient && s.tensor != none && s.bytes > Bytes{})
      r[static_cast<std::size_t>(g.tensor(s.tensor).of)] = s.born;
  return r;
}

/// The tensors that the rank has in its memory.
inline std::vector<char> held(const Graph& g, const Timeline& t) {
  std::vector<char> r(g.tensors.size(), 0);
  for (const Storage& s : t.storages())
    if (s.tensor != none && s.bytes > Bytes{}) r[static_cast<std::size_t>(s.tensor)] = 1;
  return r;
}

inline std::vector<Bytes> bytes_of(const std::vector<Bucket>& all) {
  std::vector<Bytes> r;
  for (const Bucket& b : all) r.push_back(b.bytes);
  return r;
}

/// Trained weights of the rank in the order in which buckets are filled, and whether all get a gradient.
struct Order {
  std::vector<TensorId> weights;
  bool is_ready_order = true;
};
inline Order order(const Graph& g, const Timeline& t, std::span<const TensorId> trained) {
  const std::vector<char> here = held(g, t);
  const std::vector<NodeId> ready = first_gradients(g, t);
  Order r;
  for (const TensorId w : trained)
    if (here[static_cast<std::size_t>(w)]) r.weights.push_back(w);
  const auto at = [&](TensorId w) { return ready[static_cast<std::size_t>(w)]; };
  r.is_ready_order = std::none_of(r.weights.begin(), r.weights.end(), [&](TensorId w) { return at(w) == none; });
  if (r.is_ready_order)
    sort_stably(r.weights, [&](TensorId a, TensorId b) { return at(a) < at(b); });
  else
    std::reverse(r.weights.begin(), r.weights.end());
  return r;
}

}  // namespace ddp

VLMEST_INLINE std::vector<Bucket> fill_buckets(const Graph& g, std::span<const TensorId> tensors, Bytes first,
                                               Bytes cap) {
  struct Open {
    DType type;
    Bucket bucket;
    Bytes limit;
  };
  std::vector<Bucket> r;
  std::vector<Open> open;
  for (const TensorId id : tensors) {
    const Tensor& t = g.tensor(id);
    auto at = std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.type == t.dtype; });
    if (at == open.end()) at = open.insert(open.end(), {t.dtype, {}, first});
    at->bucket.bytes += requested_bytes(t);
    ++at->bucket.tensors;
    if (at->bucket.bytes < at->limit) continue;
    r.push_back(at->bucket);
    *at = {t.dtype, {}, cap};
  }
  for (const Open& o : open)
    if (o.bucket.tensors > 0) r.push_back(o.bucket);
  return r;
}

VLMEST_INLINE std::vector<Bytes> ddp_buckets(const Graph& g, const Timeline& t, std::span<const TensorId> trained) {
  return ddp::bytes_of(fill_buckets(g, ddp::order(g, t, trained).weights, ddp::first_bucket, ddp::bucket_cap));
}

VLMEST_INLINE RankSetUp ddp_set_up(const Graph& g, const Timeline& t, std::span<const TensorId> trained) {
  RankSetUp r;
  const std::vector<char> here = ddp::held(g, t);
  std::vector<TensorId> all;
  for (const TensorId w : parameter_order(g, static_cast<TensorId>(g.loaded().size())))
    if (g.tensor(w).alias_of == none && here[static_cast<std::size_t>(w)]) all.push_back(w);
  for (const Bucket& b : fill_buckets(g, all, ddp::broadcast, ddp::broadcast))
    if (b.tensors > 1) r.sent.push_back(b.bytes);  // one alone is sent as it lies
  r.buckets = ddp_buckets(g, t, trained);
  return r;
}

VLMEST_INLINE void move_into_buckets(Timeline& t, const Graph& g) {
  const Phase& last = g.phases[g.phases.size() - 2];
  std::vector<NodeId> ready(g.tensors.size(), none);
  for (NodeId n = last.first; n < last.last; ++n)
    for (const TensorId out : g.outputs(g.node(n))) ready[static_cast<std::size_t>(g.owner(out))] = n;
  std::vector<Storage> added;
  for (std::size_t i = 0; i < t.storages().size(); ++i) {
    const Storage& s = t.storages()[i];
    if (s.role != Role::gradient || s.tensor == none || s.bytes == Bytes{}) continue;
    const NodeId at = ready[static_cast<std::size_t>(s.tensor)];
    // What no node of the last backward adds to, a copy's own part of a tied sum, is there until its end.
    const NodeId dies = at != none && at >= s.born ? at + 1 : last.last;
    added.push_back({none, s.born, dies, s.scope, s.bytes, Role::workspace, 0, BesideGraph::whole_gradients});
    t.resize(i, Bytes{});
  }
  t.add(added);
}

}  // namespace vlmest::parallel
