// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime.h>
#include <kernels/cuda/check.hpp>

#include <vlmest/unit/units.hpp>

namespace vlmest::cuda {

/// Memory of the current device, aligned to 256 bytes as cudaMalloc gives it, not initialised. One of zero bytes
/// allocates nothing and has a null address. Freeing waits for the device, as cudaFree does.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Bytes size) : size_(size) {
    if (size < Bytes{}) throw Error("buffer", "a negative number of bytes");
    if (size > Bytes{}) check(cudaMalloc(&data_, static_cast<std::size_t>(size.value())));
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, Bytes{})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_) static_cast<void>(cudaFree(data_));
  }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  Bytes size() const { return size_; }

 private:
  void* data_ = nullptr;
  Bytes size_{};
};

}  // namespace vlmest::cuda
