// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/zero_settings.hpp>
#include <vlmest/unit/sort_stably.hpp>

/// The buckets of DeepSpeed's stages 1 and 2, as storages of a rank (stage_1_and_2.py).
namespace vlmest::parallel::zero {

/// Storages of a rank as they are collected.
struct RankStorages {
  const Graph& g;
  const Layout& layout;
  const ZeroSettings& settings;
  std::int64_t rank, ranks;
  std::vector<Storage> added;

  void add(BesideGraph what, Bytes bytes, NodeId born, NodeId dies, Role role, ScopeId scope = 0,
           std::uint8_t stream = 0) {
    if (bytes > Bytes{} && (dies == none || born < dies))
      added.push_back({none, born, dies, scope, bytes, role, stream, what});
  }
  /// What is there from the time on at which the model was set up.
  void add_standing(BesideGraph what, Bytes bytes, Role role, ScopeId scope = 0) {
    if (bytes > Bytes{}) added.push_back({none, before_all, none, scope, bytes, role, 0, what});
  }
  const Phase& step() const { return g.phases.back(); }
  NodeId in_step(NodeId i) const { return std::min(step().first + i, step().last - 1); }
};

/// A trained parameter's place in the flat tensor, and when its gradient comes.
struct Part {
  TensorId weight = none;
  std::int64_t first = 0, elements = 0;
  NodeId gradient = none;  ///< in the last backward
};

/// Bytes that end with each node: gone when a gradient's hook runs after it.
inline std::vector<Bytes> bytes_ending(const Graph& g) {
  std::vector<Bytes> r(g.nodes.size() + 1);
  for (const Tensor& t : g.tensors)
    if (t.alias_of == none && t.role == Role::activation && t.dies != none && t.dies > 0)
      r[static_cast<std::size_t>(t.dies - 1)] += requested_bytes(t);
  return r;
}

/// Buckets of stages 1 and 2: each is reduced when the next gradient has no room, after the node that made that one;
/// the last, and all of stage 1, after the backward's last node. Those that span partitions are copied. A gradient that
/// is larger than a bucket is reduced where it is, and stays until then (extra_large_param_to_reduce).
class Buckets {
 public:
  Buckets(RankStorages& p, std::int64_t partition, DType type)
      : p_(p),
        type_(type),
        partition_(partition),
        end_(p.g.phases[p.g.phases.size() - 2].last),
        late_(p.layout.shard == Shard::zero1),
        gone_(bytes_ending(p.g)) {}

  void add(std::vector<Part> parts) {
    NodeId begin = end_;
    for (const Part& x : parts) begin = std::min(begin, x.gradient);
    p_.add(BesideGraph::gradient_bucket, bytes(p_.settings.reduce_bucket), begin, end_, Role::buffer);
    for (const Part& x : parts)
      if (is_own(x)) own_ += x.elements;
    if (!late_) {
      sort_stably(parts, [](const Part& a, const Part& b) { return a.gradient < b.gradient; });
      for (const Part& x : parts)  // it leaves the backward's last node for the bucket
        if (x.gradient + 1 == end_ && !is_large(x)) gone_[static_cast<std::size_t>(x.gradient)] += bytes(x.elements);
    }
    for (const Part& x : parts) {
      if (filled_ + x.elements > p_.settings.reduce_bucket) reduce(late_ ? end_ : x.gradient, bytes(x.elements));
      filled_ += x.elements;
      low_ = std::min(low_, x.first / partition_);
      high_ = std::max(high_, (x.first + x.elements - 1) / partition_);
      owns_ = owns_ || is_own(x);
      if (is_large(x))
        large_ = x;
      else if (late_)
        freed_ += bytes(x.elements);
    }
    reduce(end_, {});
    const BesideGraph what = kept_ == end_ ? BesideGraph::gradient_partition : BesideGraph::bucket_copy;
    beyond(what, most_, end_ - 1);
    if (kept_ != none) p_.add(BesideGraph::gradient_partition, bytes(own_), kept_, p_.in_step(2), Role::gradient);
  }

 private:
  bool is_large(const Part& x) const { return x.elements > p_.settings.reduce_bucket; }
  Bytes bytes(std::int64_t elements) const { return size_of(Elements(elements), type_); }
  bool is_own(const Part& x) const {
    const std::int64_t from = p_.rank * partition_;
    return x.first < from + partition_ && x.first + x.elements > from;
  }
  /// What is there after node n, in the place of what ended with it.
  void beyond(BesideGraph what, Bytes all, NodeId n) {
    p_.add(what, std::max(Bytes{}, all - gone_[static_cast<std::size_t>(n)]), n, n + 1, Role::workspace);
  }
  /// After the node, whose gradient waits for room, or after the backward's last one where `at` is its end. The copy is
  /// gone before the partition is there.
  void reduce(NodeId at, Bytes waits) {
    if (filled_ == 0) return;
    const Bytes copy = low_ != high_ ? bytes(filled_) : Bytes{};
    const bool first = owns_ && kept_ == none;
    const Bytes partition = first ? bytes(own_) : Bytes{};
    if (at + 1 < end_) {
      beyond(first ? BesideGraph::gradient_partition : BesideGraph::bucket_copy, std::max(copy, partition), at);
    } else if (at < end_) {
      most_ = std::max(most_, std::max(copy, partition) + waits);
    } else {
      const Bytes kept = kept_ == end_ ? bytes(own_) : Bytes{};  // made since the last node
      most_ = std::max({most_, kept + copy - freed_, partition - freed_});
    }
    if (first) kept_ = std::min(at + 1, end_);
    if (large_.elements > 0) {
      // Stage 1 keeps what is another rank's; its own is then in the partition.
      if (!late_)
        p_.add(BesideGraph::whole_gradients, bytes(large_.elements), large_.gradient + 1, std::min(at + 1, end_),
               Role::gradient, p_.g.tensor(large_.weight).scope);
      else if (is_own(large_))
        freed_ += bytes(large_.elements);
      large_ = {};
    }
    filled_ = 0;
    owns_ = false;
    low_ = p_.ranks;
    high_ = -1;
  }

  RankStorages& p_;
  DType type_;
  std::int64_t partition_;
  NodeId end_;
  bool late_;  ///< stage 1
  std::vector<Bytes> gone_;
  std::int64_t own_ = 0;  ///< elements of parameters that lie in this rank's partition, in part at least
  // The bucket that is being filled, and whose partitions its parameters belong to.
  std::int64_t filled_ = 0, low_ = p_.ranks, high_ = -1;
  bool owns_ = false;
  Part large_{};            ///< the gradient that stands for the whole bucket
  NodeId kept_ = none;      ///< since when the partition's gradients are kept
  Bytes freed_{}, most_{};  ///< after the backward: gradients that are in buckets, and what is there beside the others
};

}  // namespace vlmest::parallel::zero
