// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime.h>

#include <vlmest/unit/units.hpp>

namespace vlmest::bench {

/// The device memory of the benchmarks: a pool of cudaMallocAsync that keeps what it got, so that allocating again is
/// cheap, and that knows its own high-water mark.
class Pool {
 public:
  Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// Throws Error where the device has not enough memory, after giving back what the pool keeps in vain.
  void* allocate(Bytes size, cudaStream_t stream);
  void release(void* data, cudaStream_t stream);

  Bytes used() const;
  /// The most that was in use since the last reset.
  Bytes high_water() const;
  void reset_high_water();
  /// What can still be allocated: free on the device, and kept by the pool unused.
  Bytes free() const;

 private:
  Bytes attribute(cudaMemPoolAttr which) const;
  cudaMemPool_t pool_ = nullptr;
};

/// An allocation of a pool, given back in the order of a stream.
class PoolBuffer {
 public:
  PoolBuffer() = default;
  PoolBuffer(Pool& pool, Bytes size, cudaStream_t stream)
      : pool_(&pool), stream_(stream), data_(size > Bytes{} ? pool.allocate(size, stream) : nullptr), size_(size) {}
  PoolBuffer(PoolBuffer&& other) noexcept { swap(other); }
  PoolBuffer& operator=(PoolBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PoolBuffer() {
    if (data_) pool_->release(data_, stream_);
  }

  void* data() const { return data_; }
  Bytes size() const { return size_; }

 private:
  void swap(PoolBuffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  Pool* pool_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
  Bytes size_{};
};

}  // namespace vlmest::bench
