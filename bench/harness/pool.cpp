// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include <bench/harness/pool.hpp>
#include <kernels/cuda/check.hpp>

namespace vlmest::bench {

Pool::Pool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cuda::check(cudaGetDevice(&properties.location.id));
  cuda::check(cudaMemPoolCreate(&pool_, &properties));
  std::uint64_t everything = UINT64_MAX;
  cuda::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &everything));
}
Pool::~Pool() { static_cast<void>(cudaMemPoolDestroy(pool_)); }

void* Pool::allocate(Bytes size, cudaStream_t stream) {
  void* data = nullptr;
  const auto bytes = static_cast<std::size_t>(size.value());
  if (cudaMallocFromPoolAsync(&data, bytes, pool_, stream) == cudaSuccess) return data;
  // The pool may hold enough in pieces that do not fit together: they go back to the device before the second attempt.
  static_cast<void>(cudaGetLastError());
  cuda::check(cudaStreamSynchronize(stream));
  cuda::check(cudaMemPoolTrimTo(pool_, 0));
  cuda::check(cudaMallocFromPoolAsync(&data, bytes, pool_, stream));
  return data;
}
void Pool::release(void* data, cudaStream_t stream) { static_cast<void>(cudaFreeAsync(data, stream)); }

Bytes Pool::attribute(cudaMemPoolAttr which) const {
  std::uint64_t value = 0;
  cuda::check(cudaMemPoolGetAttribute(pool_, which, &value));
  return Bytes(value);
}
Bytes Pool::used() const { return attribute(cudaMemPoolAttrUsedMemCurrent); }
Bytes Pool::high_water() const { return attribute(cudaMemPoolAttrUsedMemHigh); }
void Pool::reset_high_water() {
  std::uint64_t zero = 0;  // the only value that may be set: the mark then starts at what is in use
  cuda::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &zero));
}
Bytes Pool::free() const {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total));
  return Bytes(free) + attribute(cudaMemPoolAttrReservedMemCurrent) - used();
}

}  // namespace vlmest::bench
