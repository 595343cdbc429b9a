// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/analysis/beside_graph.hpp>
#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// Birth of what was there before the first node, and before the graph's own tensors.
inline constexpr NodeId before_all = -1;

/// The turn in which a node's own storages come. Between two nodes others may go and come before that, turn by turn: of
/// a turn first those that go, then those that come.
inline constexpr std::uint8_t own_turn = 255;

/// One storage: what analyses need of the tensor that owns it, close together in memory.
struct Storage {
  TensorId tensor = none;
  NodeId born = 0;
  NodeId dies = none;  ///< none: lives to the end, as inputs do, which the caller goes on holding
  ScopeId scope = 0;
  Bytes bytes{};  ///< as requested from the allocator
  Role role = Role::activation;
  std::uint8_t stream = 0;  ///< CUDA stream, each of which has memory of its own; 0: the one that runs the graph
  BesideGraph beside = BesideGraph::nothing;  ///< what it is, where no tensor owns it, or a copy of one
  std::uint8_t comes = own_turn;              ///< in which turn before node `born`
  std::uint8_t goes = 0;                      ///< in which turn before node `dies`
};

/// What is done with a model that several ranks run: before the first step, and where the second begins.
struct RankSetUp {
  std::vector<Bytes> sent{};  ///< flat copies of its weights, which go again: two of them are there at a time
  /// Weights that are loaded whole and then divided: group by group, of each first the parts are made, then the whole
  /// weights go.
  std::vector<std::vector<TensorId>> divided{};
  std::vector<Bytes> buckets{};  ///< of gradients, from the second step on; none: those of the first step stay
};

/// When storages are allocated and freed. Storages are born in the order of their index, which is that of their owners'
/// ids; for every node, a list names those that go between the node before it and itself, by their turns. Storages of
/// what runs beside the graph have no tensor.
class Timeline {
 public:
  Timeline() = default;
  explicit Timeline(const Graph& g) { assign(g); }

  void assign(const Graph& g) {
    const auto owns = [](const Tensor& t) { return t.alias_of == none; };
    storages_.resize(static_cast<std::size_t>(std::count_if(g.tensors.begin(), g.tensors.end(), owns)));
    auto next = storages_.begin();
    for (std::size_t i = 0; i < g.tensors.size(); ++i) {
      const Tensor& t = g.tensors[i];
      if (!owns(t)) continue;
      const NodeId dies = t.role == Role::input ? none : t.dies;
      const DType type = t.role == Role::weight ? kept_dtype(g, t) : t.dtype;
      *next++ = {static_cast<TensorId>(i), t.born, dies, t.scope, size_of(t.storage, type), t.role};
    }
    has_turns_ = false;
    set_up_ = {};
    first_.resize(g.nodes.size() + 2);
    list_deaths();
  }
  /// Adds storages beside those of the graph; among equals they are born last.
  void add(std::span<const Storage> also) {
    const auto earlier = [](const Storage& a, const Storage& b) {
      return a.born < b.born || (a.born == b.born && a.comes < b.comes);
    };
    const auto here = static_cast<std::ptrdiff_t>(storages_.size());
    storages_.insert(storages_.end(), also.begin(), also.end());
    std::stable_sort(storages_.begin() + here, storages_.end(), earlier);
    std::inplace_merge(storages_.begin(), storages_.begin() + here, storages_.end(), earlier);
    has_turns_ =
        has_turns_ || std::any_of(also.begin(), also.end(), [](const Storage& s) { return s.comes < own_turn; });
    list_deaths();
    sort_turns();
  }

  void set_up(RankSetUp s) { set_up_ = std::move(s); }
  const RankSetUp& set_up() const { return set_up_; }

  std::span<const Storage> storages() const { return storages_; }
  /// Whether storages come in turns ahead of a node's own. None of a graph does.
  bool has_turns() const { return has_turns_; }
  /// The same life with another size, maybe on another stream.
  void resize(std::size_t i, Bytes bytes, std::uint8_t stream = 0) {
    storages_[i].bytes = bytes;
    storages_[i].stream = stream;
  }
  const Storage& storage(std::int32_t i) const { return storages_[static_cast<std::size_t>(i)]; }
  /// Indices of the storages that die at node n (before its own come), by turns, of one in order.
  std::span<const std::int32_t> frees(NodeId n) const {
    const auto i = static_cast<std::size_t>(n);
    return {freed_.data() + first_[i], static_cast<std::size_t>(first_[i + 1] - first_[i])};
  }

 private:
  void list_deaths() {
    std::fill(first_.begin(), first_.end(), 0);
    for (const Storage& s : storages_)
      if (s.dies != none) ++first_[static_cast<std::size_t>(s.dies) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    freed_.resize(static_cast<std::size_t>(first_.back()));
    next_ = first_;
    for (std::size_t i = 0; i < storages_.size(); ++i)
      if (const NodeId n = storages_[i].dies; n != none)
        freed_[static_cast<std::size_t>(next_[static_cast<std::size_t>(n)]++)] = static_cast<std::int32_t>(i);
  }
  /// Few storages go in another turn than the first, and none of a graph.
  void sort_turns() {
    const auto turn = [&](std::int32_t i) { return storages_[static_cast<std::size_t>(i)].goes; };
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].goes == 0 || storages_[i].dies == none) continue;
      const auto n = static_cast<std::size_t>(storages_[i].dies);
      std::stable_sort(freed_.begin() + first_[n], freed_.begin() + first_[n + 1],
                       [&](std::int32_t a, std::int32_t b) { return turn(a) < turn(b); });
    }
  }

  std::vector<Storage> storages_;
  std::vector<std::int32_t> first_, next_, freed_;
  bool has_turns_ = false;
  RankSetUp set_up_;
};

}  // namespace vlmest
