// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime.h>
#include <kernels/cuda/check.hpp>

#include <vlmest/unit/rate.hpp>

namespace vlmest::cuda {

/// A point in a stream whose time the device notes.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_)); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) static_cast<void>(cudaEventDestroy(event_));
  }

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream)); }
  void synchronize() const { check(cudaEventSynchronize(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Both must have been recorded and passed; throws Error otherwise.
inline Seconds elapsed(const Event& from, const Event& to) {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, from.get(), to.get()));
  return {ms * 1e-3};
}

}  // namespace vlmest::cuda
