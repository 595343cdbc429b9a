// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/allocator/layer_memo.hpp>
#include <vlmest/analysis/timeline.hpp>
#include <vlmest/library/cublas.hpp>

namespace vlmest::allocator {

/// Memory of one phase as the framework reports it.
struct PhaseMemory {
  Bytes before{};           ///< allocated when the phase began
  Bytes peak{};             ///< torch.cuda.max_memory_allocated() of the phase
  Bytes after{};            ///< allocated when its outputs still live
  Bytes reserved{};         ///< torch.cuda.max_memory_reserved() of the process so far
  NodeId node = 0;          ///< the node inside which the peak lies
  Bytes scratch{};          ///< library scratch at the peak, rounded by the allocator
  Fragmentation at_peak{};  ///< how reserved memory is spent at that moment
};

/// Memory while a node runs.
struct NodeMemory {
  NodeId node = 0;
  Bytes allocated{};  ///< its scratch included
  Bytes scratch{};    ///< what the libraries behind it take for as long as it runs
  Bytes libraries{};  ///< their workspaces, which stay
  Bytes reserved{};
};

/// For who asks for no node: those of layers that are known then need not run (layer_memo.hpp).
struct Unobserved {
  void operator()(const NodeMemory&) const {}
};

/// A fresh process that runs a graph: its caching allocator, the block of every storage, and the workspaces that the
/// math libraries take once and keep.
class Process {
 public:
  Process(const Graph& g, const Timeline& timeline, int sm, const AllocatorConfig& config = {})
      : g_(g), timeline_(timeline), allocator_(config), sm_(sm) {
    held_.blocks.resize(timeline.storages().size());
    held_.sizes.resize(timeline.storages().size());
  }

  /// Takes the bytes of all parameters at once and gives them back to the allocator, which keeps them
  /// (transformers 5.17 modeling_utils.py, caching_allocator_warmup).
  void warm_up() {
    Bytes all{};
    for (const Storage& s : timeline_.storages())
      if (s.role == Role::weight) all += s.bytes;
    allocator_.free(allocator_.alloc(all));
  }

  /// Allocates everything that exists before the first phase: what stands beside the graph, parameters and buffers in
  /// the order of their creation (those that building the model drops again go), then the inputs.
  void load() {
    const auto all = timeline_.storages();
    for (; next_ < all.size() && all[next_].born == before_all; ++next_) allocate(next_);
    const Bytes beside = allocator_.allocated();
    begin_ = g_.phases.empty() ? static_cast<NodeId>(g_.nodes.size()) : g_.phases.front().first;
    const auto model = [](const Storage& s) { return s.role == Role::weight || s.role == Role::buffer; };
    for (; next_ < all.size() && all[next_].born <= begin_ && model(all[next_]); ++next_) allocate(next_);
    for (std::size_t i = 0; i < next_; ++i)
      if (all[i].dies != none && all[i].dies <= begin_) free(i);
    weights_ = allocator_.allocated() - beside;
    for (; next_ < all.size() && all[next_].born <= begin_ && outside(all[next_]); ++next_) allocate(next_);
    loaded_ = next_;
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
    const auto look = [&](NodeId n, std::int64_t kept) {
      const std::int64_t now = allocator_.allocated().value();
      if (now > peak) {
        peak = now;
        r.node = n;
        r.scratch = Bytes(now - kept);
        r.at_peak = allocator_.fragmentation();
      }
      observe(NodeMemory{n, Bytes(now), Bytes(now - kept), libraries_, allocator_.reserved()});
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
        p, [](NodeId, std::int64_t) {}, memo());
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
      if (timeline_.storages()[i].role != Role::optimizer_state) free(i);
    next_ = to;
    restore();
  }

  /// Whether a phase replaces what was loaded (Qwen2-VL's rope_deltas), which may then come to lie elsewhere.
  bool replaces() const {
    const auto loaded = timeline_.storages().first(loaded_);
    return std::any_of(loaded.begin(), loaded.end(), [&](const Storage& s) { return replaced(s); });
  }

  /// torch.cuda.empty_cache()
  void empty_cache() { allocator_.empty_cache(); }

  /// Bytes that a storage (an index into the timeline's) really occupies, its unsplit remainder included.
  Bytes occupied(std::size_t storage) const { return held_.sizes[storage]; }
  /// Allocated once the model was loaded: parameters and buffers with the allocator's rounding.
  Bytes weights() const { return weights_; }
  /// torch.cuda.max_memory_reserved() of the process so far.
  Bytes peak_reserved() const { return allocator_.peak_reserved(); }
  /// Workspaces of the math libraries, once taken.
  Bytes library_workspaces() const { return libraries_; }
  const CachingAllocator& allocator() const { return allocator_; }

 private:
  static bool outside(const Storage& s) {
    return s.role == Role::weight || s.role == Role::buffer || s.role == Role::input;
  }
  void allocate(std::size_t i) {
    if (held_.blocks[i].index != none) return;  // an optimizer state of an earlier step
    const Storage& s = timeline_.storages()[i];
    const Placed placed = allocator_.take(s.bytes, s.stream);
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
    return std::optional<LayerMemo>(std::in_place, g_, timeline_, allocator_, held_);
  }
  /// Node by node, but for layers that a memo knows; `at(node, kept)` is called while the node's scratch is there,
  /// beside `kept` allocated bytes.
  template <class At>
  void run_nodes(const Phase& p, At&& at, std::optional<LayerMemo> memo) {
    const auto all = timeline_.storages();
    Handles& handles = handles_[static_cast<std::size_t>(p.thread)];
    std::size_t next = end_;
    for (NodeId n = p.first; n < p.last; ++n) {
      if (memo && n > p.first && memo->at_layer(n)) {
        if (const auto behind = memo->pass(next)) {
          n = behind->node;
          next = behind->storage;
          if (n >= p.last) break;
        }
        if (memo->at_layer(n)) memo->begin(next);
      }
      if (n > p.first) release(n);
      for (; next < all.size() && all[next].born <= n; ++next) allocate(next);
      const Node& node = g_.node(n);
      if (!handles.cublas || !handles.lt)
        if (const auto* m = std::get_if<Matmul>(&g_.op(node))) libraries(*m, handles);
      const std::int64_t kept = allocator_.allocated().value();
      if (node.scratch > 0) {
        scratch_.clear();
        for (Bytes b : g_.scratch_of(node)) scratch_.push_back(allocator_.alloc(b));
      }
      at(n, kept);
      if (node.scratch > 0)
        for (auto b : scratch_) allocator_.free(b);
      if (memo && memo->ends_at(n + 1)) memo->end(next);
    }
    end_ = next;
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
  /// Workspaces belong to a thread's handle on a stream (aten/src/ATen/cuda/CUDABlas.cpp, getCUDABlasLtWorkspace and
  /// CublasHandlePool.cpp): the first product takes them.
  struct Handles {
    bool cublas = false, lt = false;
  };
  void libraries(const Matmul& m, Handles& h) {
    if (!h.cublas) {
      h.cublas = true;
      take(cublas_workspace(sm_));
    }
    if (m.bias && is_half(m.dtype) && !h.lt) {
      h.lt = true;
      take(cublaslt_workspace());
    }
  }
  void take(Bytes b) { libraries_ += allocator_.take(b).size; }

  const Graph& g_;
  const Timeline& timeline_;
  CachingAllocator allocator_;
  HeldStorages held_;
  std::vector<Block> scratch_;
  std::size_t next_ = 0, end_ = 0;  ///< where the storages begin that the next phase makes, and those behind the last's
  std::size_t loaded_ = 0;
  NodeId begin_ = 0;  ///< of the first phase
  Bytes libraries_{}, weights_{};
  int sm_;
  std::array<Handles, 2> handles_;
};

}  // namespace vlmest::allocator
