// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime.h>
#include <kernels/cuda/check.hpp>

namespace vlmest::cuda {

/// A stream that does not wait for the default stream.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_) static_cast<void>(cudaStreamDestroy(stream_));
  }

  cudaStream_t get() const { return stream_; }
  /// Also the place where a failure inside a kernel shows.
  void synchronize(std::source_location where = std::source_location::current()) const {
    check(cudaStreamSynchronize(stream_), where);
  }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace vlmest::cuda
