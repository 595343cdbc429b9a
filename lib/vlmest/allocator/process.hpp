// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/analysis/timeline.hpp>
#include <vlmest/device/device.hpp>

namespace vlmest::allocator {

/// Memory of one phase as the framework reports it.
struct PhaseMemory {
  Bytes before{};         ///< allocated when the phase began
  Bytes peak{};           ///< torch.cuda.max_memory_allocated() of the phase
  Bytes after{};          ///< allocated when its outputs still live
  Bytes reserved{};       ///< torch.cuda.max_memory_reserved() of the process so far
  NodeId node = 0;        ///< the node inside which the peak lies
  Bytes scratch{};        ///< library scratch at the peak, rounded by the allocator
};

/// A fresh process that runs a graph: its caching allocator, the block of every storage, and the workspaces that the
/// math libraries take once and keep.
class Process {
 public:
  Process(const Graph& g, const Frees& frees, int sm, const AllocatorConfig& config = {})
      : g_(g), frees_(frees), allocator_(config), sm_(sm) {
    blocks_.resize(g.tensors.size());
    sizes_.resize(g.tensors.size());
  }

  /// Allocates everything that exists before the first phase: parameters and buffers in the order of their creation
  /// (those that building the model drops again go), then the inputs.
  void load() {
    const NodeId begin = g_.phases.empty() ? static_cast<NodeId>(g_.nodes.size()) : g_.phases.front().first;
    const auto model = [](const Tensor& t) { return t.role == Role::weight || t.role == Role::buffer; };
    for (; next_ < g_.tensors.size() && g_.tensors[next_].born <= begin && model(g_.tensors[next_]); ++next_) allocate(next_);
    for (std::size_t i = 0; i < next_; ++i)
      if (g_.tensors[i].dies != none && blocks_[i].index != none) free(i);
    weights_ = allocator_.allocated();
    for (; next_ < g_.tensors.size() && g_.tensors[next_].born <= begin && outside(g_.tensors[next_]); ++next_) allocate(next_);
  }

  /// Runs a phase, and what precedes it: caches that are put in place for it.
  PhaseMemory run(const Phase& p) {
    PhaseMemory r;
    std::size_t next = next_;
    enter(p, next);
    allocator_.reset_peak();
    r.before = allocator_.allocated();
    std::int64_t peak = 0;
    for (NodeId n = p.first; n < p.last; ++n) {
      if (n > p.first) release(n);
      for (; next < g_.tensors.size() && g_.tensors[next].born <= n; ++next) allocate(next);
      const Node& node = g_.node(n);
      libraries(node);
      const std::int64_t kept = allocator_.allocated().value();
      if (node.scratch > 0) {
        scratch_.clear();
        for (Bytes b : g_.scratch_of(node)) scratch_.push_back(allocator_.alloc(b));
      }
      if (const std::int64_t now = allocator_.allocated().value(); now > peak) {
        peak = now;
        r.node = n;
        r.scratch = Bytes(now - kept);
      }
      if (node.scratch > 0)
        for (auto b : scratch_) allocator_.free(b);
    }
    end_ = next;
    r.peak = Bytes(peak);
    r.after = allocator_.allocated();
    r.reserved = allocator_.peak_reserved();
    return r;
  }

  /// Drops everything that the phase made and still holds, so that it can run again: its result and its caches. Their
  /// sizes stay readable.
  void drop() {
    for (std::size_t i = next_; i < end_; ++i)
      if (blocks_[i].index != none) free(i);
  }
  /// Keeps what the phase made; later phases go on from there.
  void keep() { next_ = end_; }

  /// Bytes that the storage of t really occupies, its unsplit remainder included.
  Bytes occupied(TensorId t) const { return sizes_[static_cast<std::size_t>(t)]; }
  /// Allocated once the model was loaded: parameters and buffers with the allocator's rounding.
  Bytes weights() const { return weights_; }
  /// Workspaces of the math libraries, once taken.
  Bytes library_workspaces() const { return libraries_; }
  const CachingAllocator& allocator() const { return allocator_; }

 private:
  static bool outside(const Tensor& t) {
    return t.role == Role::weight || t.role == Role::buffer || t.role == Role::input;
  }
  void allocate(std::size_t i) {
    const Tensor& t = g_.tensors[i];
    if (t.alias_of != none) return;
    blocks_[i] = allocator_.alloc(requested_bytes(t));
    sizes_[i] = allocator_.block_size(blocks_[i]);
  }
  void free(std::size_t i) {
    allocator_.free(blocks_[i]);
    blocks_[i] = {};
  }
  void release(NodeId n) {
    for (TensorId t : frees_.at(n))
      if (blocks_[static_cast<std::size_t>(t)].index != none) free(static_cast<std::size_t>(t));
  }
  /// What dies before the phase's first node goes, what is put in place for the phase comes.
  void enter(const Phase& p, std::size_t& next) {
    release(p.first);
    for (; next < g_.tensors.size() && g_.tensors[next].born <= p.first; ++next) {
      const Tensor& t = g_.tensors[next];
      if (t.alias_of == none && !outside(t) && t.role != Role::kv_cache) break;
      if (blocks_[next].index == none) allocate(next);
    }
  }
  void libraries(const Node& node) {
    const auto* m = std::get_if<Matmul>(&node.op);
    if (!m) return;
    if (!have_cublas_) {
      have_cublas_ = true;
      take(cublas_workspace(sm_));
    }
    if (m->bias && is_half(m->dtype) && !have_lt_) {
      have_lt_ = true;
      take(cublaslt_workspace());
    }
  }
  void take(Bytes b) {
    const Block block = allocator_.alloc(b);
    libraries_ += allocator_.block_size(block);
  }

  const Graph& g_;
  const Frees& frees_;
  CachingAllocator allocator_;
  std::vector<Block> blocks_;
  std::vector<Bytes> sizes_;
  std::vector<Block> scratch_;
  std::size_t next_ = 0, end_ = 0;
  Bytes libraries_{}, weights_{};
  int sm_;
  bool have_cublas_ = false, have_lt_ = false;
};

}  // namespace vlmest::allocator
