// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <bench/harness/blocker.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/cuda/device.hpp>

namespace vlmest::bench {
namespace {

__device__ std::uint64_t device_time_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__global__ void wait_for_ticket(const volatile std::int32_t* released, volatile std::int32_t* given_up,
                                std::int32_t ticket, std::uint64_t timeout_ns) {
  const std::uint64_t start = device_time_ns();
  while (*released < ticket)
    if (device_time_ns() - start > timeout_ns) {
      *given_up = ticket;
      __threadfence_system();
      return;
    }
}

/// One block for each multiprocessor; where two land on one, the later reading stays.
__global__ void read_clocks(ClockReading* readings, int multiprocessors) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm < static_cast<unsigned>(multiprocessors)) readings[sm] = {device_time_ns(), clock64()};
}

__global__ void nothing() {}

}  // namespace

struct Blocker::Shared {
  volatile std::int32_t released;
  volatile std::int32_t given_up;
};

Blocker::Blocker(Seconds timeout) : timeout_ns_(static_cast<std::uint64_t>(timeout.value * 1e9)) {
  cuda::check(cudaHostAlloc(&shared_, sizeof(Shared), cudaHostAllocMapped));
  shared_->released = 0;
  shared_->given_up = 0;
}
Blocker::~Blocker() {
  release();
  static_cast<void>(cudaDeviceSynchronize());  // nobody may still read the flag
  static_cast<void>(cudaFreeHost(shared_));
}

void Blocker::block(cudaStream_t stream) {
  ++ticket_;
  wait_for_ticket<<<1, 1, 0, stream>>>(&shared_->released, &shared_->given_up, ticket_, timeout_ns_);
  cuda::check(cudaGetLastError());
}
void Blocker::release() { shared_->released = ticket_; }
bool Blocker::timed_out() const { return shared_->given_up == ticket_; }

ClockProbe::ClockProbe() : multiprocessors_(cuda::multiprocessors()) {
  const std::size_t bytes = 2 * sizeof(ClockReading) * static_cast<std::size_t>(multiprocessors_);
  cuda::check(cudaHostAlloc(&readings_, bytes, cudaHostAllocMapped));
  std::fill_n(readings_, 2 * multiprocessors_, ClockReading{});
}
ClockProbe::~ClockProbe() { static_cast<void>(cudaFreeHost(readings_)); }

void ClockProbe::read(ClockReading* into, cudaStream_t stream) {
  read_clocks<<<multiprocessors_, 1, 0, stream>>>(into, multiprocessors_);
  cuda::check(cudaGetLastError());
}
void ClockProbe::begin(cudaStream_t stream) {
  std::fill_n(readings_, 2 * multiprocessors_, ClockReading{});
  read(readings_, stream);
}
void ClockProbe::end(cudaStream_t stream) { read(readings_ + multiprocessors_, stream); }

double ClockProbe::mhz() const {
  // The timer ticks once a microsecond on some devices: over 50 of them that is 2 %.
  constexpr std::uint64_t least_ns = 50'000;
  std::vector<double> seen;
  for (int i = 0; i < multiprocessors_; ++i) {
    const ClockReading &a = readings_[i], &b = readings_[multiprocessors_ + i];
    if (a.time_ns == 0 || b.time_ns < a.time_ns + least_ns || b.cycles <= a.cycles) continue;
    seen.push_back(1e3 * static_cast<double>(b.cycles - a.cycles) / static_cast<double>(b.time_ns - a.time_ns));
  }
  if (seen.empty()) return 0;
  std::nth_element(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(seen.size() / 2), seen.end());
  return seen[seen.size() / 2];
}

void launch_empty(cudaStream_t stream) {
  nothing<<<1, 1, 0, stream>>>();
  cuda::check(cudaGetLastError());
}

}  // namespace vlmest::bench
