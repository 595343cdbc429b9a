// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <vlmest/analysis/timeline.hpp>

namespace vlmest::allocator {

/// Which layers of a graph take and give the same in the same order, whatever state they begin in. They are compared
/// when they are first asked for, and once for all runs of a process.
class AlikeLayers {
 public:
  AlikeLayers(const Graph& g, const Timeline& t) : g_(g), t_(t), kinds_(g.layers.size(), none) {}

  /// Of two layers, by their indices in Graph::layers.
  bool operator()(std::size_t a, std::size_t b) { return g_.layers[a].of == g_.layers[b].of && kind(a) == kind(b); }
  /// Calls `freed` with each storage from before the layer that goes while it runs, in order.
  template <class Freed>
  void for_each_older(std::size_t layer, Freed&& freed) {
    for (const Place& p : examples_[static_cast<std::size_t>(kind(layer))].older)
      freed(static_cast<std::size_t>(t_.frees(g_.layers[layer].first + p.node)[p.index]));
  }

 private:
  std::int32_t kind(std::size_t layer) {
    std::int32_t& k = kinds_[layer];
    if (k == none) k = find_or_add(layer);
    return k;
  }
  /// Of what goes at a node of a layer, counted from its first.
  struct Place {
    NodeId node = 0;
    std::size_t index = 0;
  };
  /// The first layer of a kind.
  struct Example {
    const LayerRun* layer = nullptr;
    std::size_t storage = 0, storages = 0;  ///< that it makes
    std::vector<Place> older;
  };

  std::int32_t find_or_add(std::size_t layer) {
    const LayerRun& l = g_.layers[layer];
    const std::size_t storage = first_storage(l.first), storages = first_storage(l.last) - storage;
    for (std::size_t i = 0; i < examples_.size(); ++i)
      if (const Example& e = examples_[i]; e.layer->of == l.of && e.storages == storages &&
                                           makes_the_same(e, l, storage) && frees_the_same(e, l, storage))
        return static_cast<std::int32_t>(i);
    Example& e = examples_.emplace_back(Example{&l, storage, storages, {}});
    for (NodeId n = l.first; n < l.last; ++n)
      for (std::size_t i = 0; i < t_.frees(n).size(); ++i)
        if (static_cast<std::size_t>(t_.frees(n)[i]) < storage) e.older.push_back({n - l.first, i});
    return static_cast<std::int32_t>(examples_.size() - 1);
  }
  /// Of those that are born at node n or later.
  std::size_t first_storage(NodeId n) const {
    const auto all = t_.storages();
    const auto at = std::partition_point(all.begin(), all.end(), [n](const Storage& s) { return s.born < n; });
    return static_cast<std::size_t>(at - all.begin());
  }
  bool makes_the_same(const Example& e, const LayerRun& layer, std::size_t storage) const {
    const auto all = t_.storages();
    if (layer.last - layer.first != e.layer->last - e.layer->first) return false;
    const NodeId nodes = layer.first - e.layer->first;
    for (std::size_t i = 0; i < e.storages; ++i) {
      const Storage &a = all[storage + i], &b = all[e.storage + i];
      if (a.bytes != b.bytes || a.stream != b.stream || a.born != b.born + nodes || a.comes != b.comes) return false;
    }
    for (NodeId n = layer.first; n < layer.last; ++n) {
      const auto a = g_.scratch_of(g_.node(n)), b = g_.scratch_of(g_.node(n - nodes));
      if (g_.node(n).op != g_.node(n - nodes).op || !std::equal(a.begin(), a.end(), b.begin(), b.end())) return false;
    }
    return true;
  }
  bool frees_the_same(const Example& e, const LayerRun& layer, std::size_t storage) const {
    for (NodeId n = layer.first; n < layer.last; ++n) {
      const auto a = t_.frees(n), b = t_.frees(n - layer.first + e.layer->first);
      if (a.size() != b.size()) return false;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const auto s = static_cast<std::size_t>(a[i]), t = static_cast<std::size_t>(b[i]);
        if ((s >= storage) != (t >= e.storage) || t_.storages()[s].goes != t_.storages()[t].goes) return false;
        if (s >= storage && s - storage != t - e.storage) return false;
      }
    }
    return true;
  }

  const Graph& g_;
  const Timeline& t_;
  std::vector<std::int32_t> kinds_;  ///< by layer; none: not asked for yet
  std::vector<Example> examples_;    ///< by kind
};

}  // namespace vlmest::allocator
