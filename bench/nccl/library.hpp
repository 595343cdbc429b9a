// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime.h>

namespace vlmest::bench::nccl {

/// NCCL, loaded at run time: it is no part of the CUDA toolkit, and everything else is measured without it.
class Library {
 public:
  /// Throws Error where there is none.
  Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  /// "2.28.9"
  std::string version() const;

  /// Of each device, in their order, in one process (ncclCommInitAll).
  std::vector<void*> communicators(int devices) const;
  void destroy(void* communicator) const;

  /// Calls in between are one operation; each is of elements of bfloat16, summed where it reduces.
  void group_start() const;
  void group_end() const;
  void all_reduce(const void* from, void* to, std::size_t elements, void* communicator, cudaStream_t stream) const;
  /// `part` elements of each rank.
  void reduce_scatter(const void* from, void* to, std::size_t part, void* communicator, cudaStream_t stream) const;
  void all_gather(const void* from, void* to, std::size_t part, void* communicator, cudaStream_t stream) const;
  void send(const void* from, std::size_t elements, int rank, void* communicator, cudaStream_t stream) const;
  void receive(void* to, std::size_t elements, int rank, void* communicator, cudaStream_t stream) const;

 private:
  template <class F>
  F function(const char* name) const;
  void check(int answer) const;

  void* library_ = nullptr;
};

}  // namespace vlmest::bench::nccl
