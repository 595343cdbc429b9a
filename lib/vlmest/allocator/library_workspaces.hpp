// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <variant>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/library/cublas.hpp>

namespace vlmest::allocator {

/// The workspaces that the math libraries of a process take once and keep. They belong to a thread's handle on a stream
/// (aten/src/ATen/cuda/CUDABlas.cpp, getCUDABlasLtWorkspace and CublasHandlePool.cpp): the first product takes them.
class LibraryWorkspaces {
 public:
  explicit LibraryWorkspaces(int sm) : sm_(sm) {}

  /// What a thread's handles still lack when they run the node is taken.
  void take(const Graph& g, const Node& node, int thread, CachingAllocator& a) {
    Handles& h = handles_[static_cast<std::size_t>(thread)];
    if (!h.cublas || !h.lt)
      if (const auto* m = std::get_if<Matmul>(&g.op(node))) take(*m, h, a);
  }
  /// All of them, once taken.
  Bytes bytes() const { return bytes_; }

 private:
  struct Handles {
    bool cublas = false, lt = false;
  };
  void take(const Matmul& m, Handles& h, CachingAllocator& a) {
    if (!h.cublas) {
      h.cublas = true;
      bytes_ += a.take(cublas_workspace(sm_)).size;
    }
    if (m.bias && is_half(m.dtype) && !h.lt) {
      h.lt = true;
      bytes_ += a.take(cublaslt_workspace()).size;
    }
  }

  int sm_;
  std::array<Handles, 2> handles_;
  Bytes bytes_{};
};

}  // namespace vlmest::allocator
