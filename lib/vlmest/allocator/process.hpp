// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/allocator/layer_memo.hpp>
#include <vlmest/allocator/library_workspaces.hpp>
#include <vlmest/allocator/phase_memory.hpp>
#include <vlmest/allocator/rank_set_up.hpp>
#include <vlmest/analysis/timeline.hpp>

namespace vlmest::allocator {

/// A fresh process that runs a graph: its caching allocator, the block of every storage, and the workspaces that the
/// math libraries take once and keep.
class Process {
 public:
  Process(const Graph& g, const Timeline& timeline, int sm, const AllocatorConfig& config = {})
      : g_(g),
        timeline_(timeline),
        allocator_(config),
        divided_(divided_tensors(timeline, g.tensors.size())),
        alike_(g, timeline),
        libraries_(sm) {
    held_.blocks.resize(timeline.storages().size());
    held_.sizes.resize(timeline.storages().size());
  }

  /// Takes the bytes of all parameters at once and gives them back to the allocator, which keeps them
  /// (transformers 5.17 modeling_utils.py, caching_allocator_warmup).
  void warm_up() {
    Bytes all{};
    for (const Storage& s : timeline_.storages())
      if (s.role == Role::weight) all += loaded_bytes(s);
    allocator_.free(allocator_.alloc(all));
  }

  /// Allocates everything that exists before the first phase: what stands beside the graph, parameters and buffers in
  /// the order of their creation (those that building the model drops again go), then the inputs.
  void load() {
    const auto all = timeline_.storages();
    for (; next_ < all.size() && all[next_].born == before_all; ++next_)
      if (!is_bucket(all[next_])) allocate(next_);
    const Bytes beside = allocator_.allocated();
    begin_ = g_.phases.empty() ? static_cast<NodeId>(g_.nodes.size()) : g_.phases.front().first;
    const auto model = [](const Storage& s) { return s.role == Role::weight || s.role == Role::buffer; };
    for (; next_ < all.size() && all[next_].born <= begin_ && model(all[next_]); ++next_)
      allocate(next_, loaded_bytes(all[next_]));
    for (std::size_t i = 0; i < next_; ++i)
      if (all[i].dies != none && all[i].dies <= begin_) free(i);
    weights_ = allocator_.allocated() - beside;
    for (; next_ < all.size() && all[next_].born <= begin_ && outside(all[next_]); ++next_) allocate(next_);
    loaded_ = next_;
  }

  /// Sends weights to other ranks, puts the parts of divided ones in the place of the whole ones, makes buckets.
  void set_up() {
    send_in_turn(allocator_, timeline_.set_up().sent);
    weights_ += put_parts(timeline_, loaded_, held_, allocator_);
    for (std::size_t i = 0; i < loaded_; ++i)
      if (is_bucket(timeline_.storages()[i])) allocate(i);
  }
  /// Puts the buckets of all steps but the first in the place of those that it had.
  void rebuild_buckets() {
    const std::vector<Bytes>& buckets = timeline_.set_up().buckets;
    if (buckets.empty() || !rebuilt_.empty()) return;
    for (std::size_t i = 0; i < loaded_; ++i)
      if (is_bucket(timeline_.storages()[i])) free(i);
    for (const Bytes b : buckets) rebuilt_.push_back(allocator_.alloc(b));
  }
  /// Runs a phase, and what precedes it: caches that are put in place for it.
  PhaseMemory run(const Phase& p) { return run(p, Unobserved{}); }
  /// The same; `observe` is told of each node.
  template <class Observe>
  PhaseMemory run(const Phase& p, Observe&& observe) {
    constexpr bool unobserved = std::is_same_v<std::remove_cvref_t<Observe>, Unobserved>;
    PhaseMemory r;
    enter(p);
    allocator_.reset_peak();
    r.before = allocator_.allocated();
    // What is there already is the peak where nothing runs or all is done in place.
    std::int64_t peak = r.before.value();
    r.node = p.first;
    r.at_peak = allocator_.fragmentation();
    const auto look = [&](NodeId n, std::int64_t kept, std::uint8_t turn = own_turn) {
      const std::int64_t now = allocator_.allocated().value();
      if (now > peak) {
        peak = now;
        r.node = n;
        r.turn = turn;
        r.scratch = Bytes(now - kept);
        r.at_peak = allocator_.fragmentation();
      }
      if (turn != own_turn) return;
      observe(NodeMemory{n, Bytes(now), Bytes(now - kept), libraries_.bytes(), allocator_.reserved()});
    };
    run_nodes(p, look, unobserved ? memo() : std::nullopt);
    r.peak = Bytes(peak);
    r.after = allocator_.allocated();
    r.reserved = allocator_.peak_reserved();
    return r;
  }
  /// The same where nobody asks for its memory.
  void run_unmeasured(const Phase& p) {
    enter(p);
    allocator_.reset_peak();
    run_nodes(
        p, [](NodeId, std::int64_t, std::uint8_t = own_turn) {}, memo());
  }

  /// Drops everything that the phase made and still holds, so that it can run again: its result and its caches. Their
  /// sizes stay readable.
  void drop() {
    for (std::size_t i = next_; i < end_; ++i) free(i);
    restore();
  }
  /// Keeps what the phase made; later phases go on from there.
  void keep() { next_ = end_; }
  /// Drops what dies with the phase that ran last: its caller's variables. What is then allocated.
  Bytes settle(const Phase& p) {
    release(p.last);
    return allocator_.allocated();
  }
  /// Where the storages of the next phase begin, and going back there: everything made since is dropped but for
  /// optimizer states, which outlive the step that made them.
  std::size_t mark() const { return next_; }
  void rewind(std::size_t to) {
    for (std::size_t i = to; i < end_; ++i)
      if (held_.blocks[i].index != none && timeline_.storages()[i].role != Role::optimizer_state) free(i);
    next_ = to;
    restore();
  }

  /// torch.cuda.empty_cache()
  void empty_cache() { allocator_.empty_cache(); }

  /// A round of steps begins, to which the next one may be equal.
  void begin_round() {
    round_ = here();
    allocator_.note_choices();
  }
  /// Whether the next round would do what the one has done that ends here, and reserve nothing more: the same blocks
  /// are live. What is live at the end of a round lay there at its begin, but for what phases replace; nothing else did
  /// where it is as much.
  bool next_round_is_equal() { return allocator_.would_choose_again() && round_ == here(); }

  /// Bytes that a storage (an index into the timeline's) really occupies, its unsplit remainder included.
  Bytes occupied(std::size_t storage) const { return held_.sizes[storage]; }
  /// Allocated once the model was loaded: parameters and buffers with the allocator's rounding.
  Bytes weights() const { return weights_; }
  /// torch.cuda.max_memory_reserved() of the process so far.
  Bytes peak_reserved() const { return allocator_.peak_reserved(); }
  /// Workspaces of the math libraries, once taken.
  Bytes library_workspaces() const { return libraries_.bytes(); }
  const CachingAllocator& allocator() const { return allocator_; }

 private:
  static bool outside(const Storage& s) {
    return s.role == Role::weight || s.role == Role::buffer || s.role == Role::input;
  }
  static bool is_bucket(const Storage& s) { return s.born == before_all && s.beside == BesideGraph::gradient_bucket; }
  /// Of a weight that is still to be divided, all of it.
  Bytes loaded_bytes(const Storage& s) const {
    const bool whole = s.role == Role::weight && s.tensor != none && !divided_.empty();
    if (!whole || !divided_[static_cast<std::size_t>(s.tensor)]) return s.bytes;
    const Tensor& weight = g_.tensor(s.tensor);
    return size_of(weight.storage, kept_dtype(g_, weight));
  }
  void allocate(std::size_t i) { allocate(i, timeline_.storages()[i].bytes); }
  void allocate(std::size_t i, Bytes bytes) {
    if (held_.blocks[i].index != none) return;  // an optimizer state of an earlier step
    const Placed placed = allocator_.take(bytes, timeline_.storages()[i].stream);
    held_.blocks[i] = placed.block;
    held_.sizes[i] = placed.size;
  }
  /// Does nothing where the storage is not held.
  void free(std::size_t i) {
    if (held_.blocks[i].index != none) allocator_.free(std::exchange(held_.blocks[i], {}));
  }
  void release(NodeId n) {
    for (const auto i : timeline_.frees(n)) free(static_cast<std::size_t>(i));
  }
  /// Garbage collection asks for the age of cached blocks, which a memo does not know.
  std::optional<LayerMemo> memo() {
    if (g_.layers.empty() || collection_limit(allocator_.config()) != no_limit) return std::nullopt;
    return std::optional<LayerMemo>(std::in_place, g_, timeline_, alike_, allocator_, held_);
  }
  /// Node by node, but for layers that a memo knows; `at(node, kept)` is called while the node's scratch is there,
  /// beside `kept` allocated bytes, and `at(node, allocated, turn)` before it, once something came in that turn.
  template <class At>
  void run_nodes(const Phase& p, At&& at, std::optional<LayerMemo> memo) {
    const auto all = timeline_.storages();
    const bool in_turns = timeline_.has_turns();
    std::size_t next = end_;
    for (NodeId n = p.first; n < p.last;) {
      if (memo && n > p.first && memo->at_layer(n)) {
        if (const auto behind = memo->pass(next)) {
          n = behind->node;
          next = behind->storage;
          if (n >= p.last) break;
        }
        if (memo->at_layer(n)) memo->begin(next);
      }
      for (const NodeId until = memo ? memo->bound_behind(n, p.last) : p.last; n < until; ++n) {
        if (in_turns && n > p.first && comes_ahead(next, n)) [[unlikely]]
          next = hand_over(n, next, at);
        else if (n > p.first)
          release(n);
        for (; next < all.size() && all[next].born <= n; ++next) allocate(next);
        const Node& node = g_.node(n);
        libraries_.take(g_, node, p.thread, allocator_);
        const std::int64_t kept = allocator_.allocated().value();
        for (const Bytes b : g_.scratch_of(node)) scratch_.push_back(allocator_.alloc(b));
        at(n, kept);
        for (const Block b : scratch_) allocator_.free(b);
        scratch_.clear();
      }
      if (memo && memo->ends_at(n)) memo->end(next);
    }
    // What comes ahead of the next phase's first node belongs to this one's end.
    if (comes_ahead(next, p.last)) next = hand_over(p.last, next, at);
    end_ = next;
  }
  /// Whether the storage comes between node n and the one before, ahead of the node's own.
  bool comes_ahead(std::size_t storage, NodeId n) const {
    const auto all = timeline_.storages();
    return storage < all.size() && all[storage].born == n && all[storage].comes < own_turn;
  }
  /// Between node n and the one before: what dies goes, and what comes ahead of the node's own is there. The storage
  /// that comes next.
  template <class At>
  std::size_t hand_over(NodeId n, std::size_t next, At&& at) {
    const auto all = timeline_.storages();
    const auto gone = timeline_.frees(n);
    std::size_t i = 0;
    for (; comes_ahead(next, n); ++next) {
      for (; i < gone.size() && timeline_.storage(gone[i]).goes <= all[next].comes; ++i)
        free(static_cast<std::size_t>(gone[i]));
      allocate(next);
      at(n, allocator_.allocated().value(), all[next].comes);
    }
    for (; i < gone.size(); ++i) free(static_cast<std::size_t>(gone[i]));
    return next;
  }
  /// Where a round begins: what is allocated, and the places of what a phase replaces (Qwen2-VL's rope_deltas).
  struct Round {
    Bytes allocated{};
    std::vector<std::pair<std::int64_t, Bytes>> replaced;
    bool operator==(const Round&) const = default;
  };
  Round here() const {
    Round r{allocator_.allocated(), {}};
    for (std::size_t i = 0; i < loaded_; ++i)
      if (replaced(timeline_.storages()[i]) && held_.blocks[i].index != none)
        r.replaced.emplace_back(allocator_.address(held_.blocks[i]), held_.sizes[i]);
    return r;
  }
  bool replaced(const Storage& s) const { return s.dies != none && s.dies > begin_; }
  /// A buffer that a phase replaced is there again: its successor has its size.
  void restore() {
    for (std::size_t i = 0; i < loaded_; ++i)
      if (replaced(timeline_.storages()[i])) allocate(i);
  }
  /// What dies before the phase's first node goes, what is put in place for the phase comes.
  void enter(const Phase& p) {
    const auto all = timeline_.storages();
    release(p.first);
    for (end_ = next_; end_ < all.size() && all[end_].born <= p.first; ++end_) {
      if (!outside(all[end_]) && all[end_].role != Role::kv_cache) break;
      allocate(end_);
    }
  }

  const Graph& g_;
  const Timeline& timeline_;
  CachingAllocator allocator_;
  HeldStorages held_;
  std::vector<Block> scratch_, rebuilt_;
  std::vector<char> divided_;
  std::size_t next_ = 0, end_ = 0;  ///< where the storages begin that the next phase makes, and those behind the last's
  std::size_t loaded_ = 0;
  NodeId begin_ = 0;  ///< of the first phase
  Bytes weights_{};
  Round round_;  ///< that began last
  AlikeLayers alike_;
  LibraryWorkspaces libraries_;
};

}  // namespace vlmest::allocator
