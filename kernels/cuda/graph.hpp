// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime.h>
#include <kernels/cuda/check.hpp>

namespace vlmest::cuda {

/// What a callable puts into a stream, recorded once and launched as often as wanted. The work itself does not run
/// while it is recorded. Addresses and sizes are those of the recording.
class Graph {
 public:
  /// Calls `work()`, which must use `stream` (not the default stream) and neither allocate nor synchronise. Let the
  /// same work run once before: a library loads its kernels at their first use, which a recording may refuse.
  template <class Work>
  Graph(cudaStream_t stream, Work&& work) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      std::forward<Work>(work)();
    } catch (...) {  // the stream must leave the recording, whatever happened in it
      cudaGraph_t partial = nullptr;
      static_cast<void>(cudaStreamEndCapture(stream, &partial));
      if (partial) static_cast<void>(cudaGraphDestroy(partial));
      static_cast<void>(cudaGetLastError());
      throw;
    }
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph));
    const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes_);
    const cudaError_t made = counted == cudaSuccess ? cudaGraphInstantiate(&executable_, graph, 0) : counted;
    static_cast<void>(cudaGraphDestroy(graph));
    check(made);
  }
  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)), nodes_(other.nodes_) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(executable_, other.executable_);
    std::swap(nodes_, other.nodes_);
    return *this;
  }
  ~Graph() {
    if (executable_) static_cast<void>(cudaGraphExecDestroy(executable_));
  }

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream)); }
  /// Kernels, copies and fills in it.
  std::size_t nodes() const { return nodes_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace vlmest::cuda
