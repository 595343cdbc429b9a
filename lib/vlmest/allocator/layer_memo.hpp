// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/allocator/alike_layers.hpp>
#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/analysis/timeline.hpp>

namespace vlmest::allocator {

/// What a process holds of its storages, by their index in the timeline.
struct HeldStorages {
  std::vector<Block> blocks;
  std::vector<Bytes> sizes;
};

/// What layers that ran did to the allocator, so that equal ones need not run.
///
/// Where nothing is opened or given back, cached blocks are what lies between the live ones, joined, so the allocator's
/// state is known by its live blocks. A layer that takes and gives the same in the same order as one before, from the
/// same state, leaves the state that that one left. Both are compared, never assumed: the storages of the two layers
/// one by one (`AlikeLayers`), and the states by what is live in them beside what was live at the begin of the stack
/// (`State`).
///
/// Layers are passed over as long as each is known, and up to where the state is that from which they set out: what the
/// last of them leaves then lies in blocks that are there. What stands in between has the memory of the layers that
/// ran.
class LayerMemo {
 public:
  LayerMemo(const Graph& g, const Timeline& t, AlikeLayers& alike, CachingAllocator& a, HeldStorages& held)
      : g_(g), t_(t), alike_(alike), allocator_(a), held_(held) {}

  /// Whether the node begins a layer; nodes are asked for in their order.
  bool at_layer(NodeId n) {
    while (next_ < g_.layers.size() && g_.layers[next_].first < n) ++next_;
    return next_ < g_.layers.size() && g_.layers[next_].first == n;
  }

  /// Where, behind node n and before `last`, the next layer begins or the one that runs ends; else `last`.
  NodeId bound_behind(NodeId n, NodeId last) const {
    if (running_.last > n) last = std::min(last, running_.last);
    for (std::size_t l = next_; l < g_.layers.size(); ++l)
      if (g_.layers[l].first > n) return std::min(last, g_.layers[l].first);
    return last;
  }

  /// Where to go on behind known layers that begin here.
  struct Place {
    NodeId node = 0;
    std::size_t storage = 0;
  };
  /// Passes over known layers; `storage` is the first that the layer makes. No value where the next one has to run.
  std::optional<Place> pass(std::size_t storage) {
    if (g_.layers[next_].first != end_) forget();  // something else ran in between
    State state = state_;
    std::vector<Open> open;    // made by layers passed over
    std::vector<Given> given;  // given back by them, of what is there
    std::optional<Place> r;
    std::vector<Open> open_there;
    std::size_t given_there = 0, layer = next_, layer_there = next_;
    for (NodeId n = g_.layers[next_].first; layer < g_.layers.size() && g_.layers[layer].first == n; ++layer) {
      const Known* known = find(layer, state, open, given);
      if (!known) break;
      for (const auto& [offset, address] : known->left) open.push_back({storage + offset, address});
      state = known->after;
      for (std::size_t i = 0; i < known->storages; ++i) held_.sizes[storage + i] = held_.sizes[known->storage + i];
      storage += known->storages;
      n = g_.layers[layer].last;
      if (state != state_) continue;
      r = Place{n, storage};
      open_there = open;
      given_there = given.size();
      layer_there = layer + 1;
    }
    if (!r) return r;
    for (const Given& b : std::span(given).first(given_there)) held_.blocks[b.storage] = {};
    for (const Open& o : open_there) {
      const auto same = [&](const Given& b) { return b.address == o.address; };
      held_.blocks[o.storage] = std::find_if(given.begin(), given.end(), same)->block;
    }
    next_ = layer_there;
    end_ = r->node;
    return r;
  }

  /// Whether the layer that began last ends before this node.
  bool ends_at(NodeId n) const { return running_.last == n; }
  /// A layer begins to run, and has run.
  void begin(std::size_t storage) {
    running_ = Known{next_, g_.layers[next_].last, storage, 0, state_, {}, {}, {}};
    growths_ = allocator_.growths();
    allocated_ = allocator_.allocated();
    for (NodeId n = g_.layers[next_].first; n < running_.last; ++n)
      for (const auto i : t_.frees(n)) {
        const auto s = static_cast<std::size_t>(i);
        if (s >= storage) continue;
        running_.freed.push_back(address(s));
        if (held_.blocks[s].index == none) continue;
        toggle(running_.freed.back(), held_.sizes[s]);
        allocated_ -= held_.sizes[s];
      }
  }
  void end(std::size_t storage) {
    running_.storages = storage - running_.storage;
    end_ = std::exchange(running_.last, none);
    for (std::size_t s = running_.storage; s < storage; ++s)
      if (held_.blocks[s].index != none) {
        running_.left.emplace_back(s - running_.storage, address(s));
        toggle(running_.left.back().second, held_.sizes[s]);
        allocated_ += held_.sizes[s];
      }
    if (state_.size() > most_live) next_ = g_.layers.size();
    // Where memory was opened, or something else stays allocated (a library's workspace), the begin is another one.
    if (growths_ != allocator_.growths() || allocated_ != allocator_.allocated() || state_.size() > most_live)
      return forget();
    running_.after = state_;
    known_.push_back(std::exchange(running_, {}));
  }

 private:
  /// Blocks, by address and size, that are live and were not, or were and are not, in order.
  using State = std::vector<std::pair<std::int64_t, std::int64_t>>;
  /// Where layers leave more behind, as in training or with a cache, no two begin alike, and no more are looked at.
  static constexpr std::size_t most_live = 8;

  struct Known {
    std::size_t layer = 0;                  ///< its index
    NodeId last = none;                     ///< one past its end, while it runs
    std::size_t storage = 0, storages = 0;  ///< that it makes
    State before;
    std::vector<std::int64_t> freed;                         ///< addresses of what is older, in order
    std::vector<std::pair<std::size_t, std::int64_t>> left;  ///< of its storages, and their addresses
    State after;
  };
  struct Open {
    std::size_t storage;
    std::int64_t address;
  };
  struct Given {
    std::size_t storage;
    std::int64_t address;
    Block block;
  };

  std::int64_t address(std::size_t s) const {
    return held_.blocks[s].index == none ? none : allocator_.address(held_.blocks[s]);
  }
  void toggle(std::int64_t address, Bytes size) {
    const std::pair block{address, size.value()};
    const auto at = std::lower_bound(state_.begin(), state_.end(), block);
    if (at != state_.end() && *at == block)
      state_.erase(at);
    else
      state_.insert(at, block);
  }
  void forget() {
    known_.clear();
    state_.clear();
  }

  /// A known layer that this one is equal to, from the same state; what it gives back is taken out of `open` or noted
  /// in `given`.
  const Known* find(std::size_t layer, const State& state, std::vector<Open>& open, std::vector<Given>& given) {
    for (const Known& k : known_) {
      if (k.before != state || !alike_(k.layer, layer) || !frees_the_same(k, layer, open)) continue;
      alike_.for_each_older(layer, [&](std::size_t s) {
        if (const auto o = opened(s, open); o != open.end())
          open.erase(o);
        else if (held_.blocks[s].index != none)
          given.push_back({s, address(s), held_.blocks[s]});
      });
      return &k;
    }
    return nullptr;
  }
  /// Whether what goes of what is older lies where it did.
  bool frees_the_same(const Known& k, std::size_t layer, std::vector<Open>& open) {
    bool same = true;
    auto freed = k.freed.begin();
    alike_.for_each_older(layer, [&](std::size_t s) {
      const auto o = opened(s, open);
      same = same && *freed++ == (o != open.end() ? o->address : address(s));
    });
    return same;
  }
  static std::vector<Open>::iterator opened(std::size_t storage, std::vector<Open>& open) {
    return std::find_if(open.begin(), open.end(), [&](const Open& x) { return x.storage == storage; });
  }

  const Graph& g_;
  const Timeline& t_;
  AlikeLayers& alike_;
  CachingAllocator& allocator_;
  HeldStorages& held_;
  std::size_t next_ = 0;  ///< the layer that comes next
  NodeId end_ = none;     ///< of the layer that ran or was passed over last
  State state_;
  std::vector<Known> known_;
  Known running_;
  std::int64_t growths_ = 0;  ///< when it began
  Bytes allocated_{};         ///< what it leaves allocated, if all of that is storages
};

}  // namespace vlmest::allocator
