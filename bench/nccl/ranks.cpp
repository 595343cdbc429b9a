// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <bench/nccl/ranks.hpp>
#include <kernels/cuda/check.hpp>

namespace vlmest::bench::nccl {
namespace {

/// Calls of a sample at most: few enough for the queue of work that a communicator has.
constexpr int most_calls = 16;

void use(std::size_t device) { cuda::check(cudaSetDevice(static_cast<int>(device))); }

int chosen(int device) {
  use(static_cast<std::size_t>(device));
  return device;
}

}  // namespace

int devices() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
  static_cast<void>(cudaGetLastError());
  return n;
}

// The device is chosen before anything is made on it.
Ranks::Rank::Rank(int device, Bytes most) : stream((chosen(device), cuda::Stream())), in(most), out(most) {
  cuda::check(cudaMemset(in.data(), 0, static_cast<std::size_t>(most.value())));
}

Ranks::Ranks(Bytes most) {
  const int n = devices();
  for (int device = 0; device < n; ++device) ranks_.push_back(std::make_unique<Rank>(device, most));
  const std::vector<void*> communicators = library_.communicators(n);
  for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->communicator = communicators[i];
}
Ranks::~Ranks() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    static_cast<void>(cudaSetDevice(static_cast<int>(i)));
    static_cast<void>(cudaDeviceSynchronize());
    if (ranks_[i]->communicator != nullptr) library_.destroy(ranks_[i]->communicator);
    ranks_[i].reset();
  }
}

void Ranks::call(const Point& p) {
  const auto elements = static_cast<std::size_t>(p.bytes.value()) / 2;
  const std::size_t part = elements / ranks_.size();
  library_.group_start();
  for (std::size_t i = 0; i < static_cast<std::size_t>(taking_part(p)); ++i) {
    Rank& r = *ranks_[i];
    const cudaStream_t s = r.stream.get();
    switch (p.kind) {
      case CollectiveKind::all_reduce:
        library_.all_reduce(r.in.data(), r.out.data(), elements, r.communicator, s);
        break;
      case CollectiveKind::reduce_scatter:
        library_.reduce_scatter(r.in.data(), r.out.data(), part, r.communicator, s);
        break;
      case CollectiveKind::all_gather: library_.all_gather(r.in.data(), r.out.data(), part, r.communicator, s); break;
      case CollectiveKind::all_to_all:
        for (int peer = 0; peer < count(); ++peer) {
          const std::size_t at = 2 * part * static_cast<std::size_t>(peer);
          library_.send(r.in.as<char>() + at, part, peer, r.communicator, s);
          library_.receive(r.out.as<char>() + at, part, peer, r.communicator, s);
        }
        break;
      case CollectiveKind::send:
        if (i == 0)
          library_.send(r.in.data(), elements, 1, r.communicator, s);
        else
          library_.receive(r.out.data(), elements, 0, r.communicator, s);
        break;
    }
  }
  library_.group_end();
}

std::optional<Seconds> Ranks::sample(const Point& p, int calls) {
  const auto n = static_cast<std::size_t>(taking_part(p));
  const auto on_each = [&](auto&& what) {
    for (std::size_t i = 0; i < n; ++i) {
      use(i);
      what(*ranks_[i]);
    }
  };
  const auto release = [&] {
    for (std::size_t i = 0; i < n; ++i) ranks_[i]->blocker.release();
  };
  try {
    on_each([](Rank& r) {
      r.blocker.block(r.stream.get());
      r.from.record(r.stream.get());
    });
    for (int i = 0; i < calls; ++i) call(p);
    on_each([](Rank& r) { r.to.record(r.stream.get()); });
  } catch (...) {
    release();
    throw;
  }
  release();
  Seconds longest{};
  bool late = false;
  on_each([&](Rank& r) {
    r.stream.synchronize();
    longest = std::max(longest, cuda::elapsed(r.from, r.to));
    late |= r.blocker.timed_out();
  });
  if (late) return std::nullopt;
  return longest * (1.0 / calls);
}

Timing Ranks::measure(const Point& p, const StopRule& rule) {
  // The first call of a size may connect the ranks, which waits for them.
  for (int i = 0; i < 2; ++i) {
    call(p);
    for (int r = 0; r < taking_part(p); ++r) ranks_[static_cast<std::size_t>(r)]->stream.synchronize();
  }
  Timing t;
  std::vector<double> times;
  Seconds spent{};
  int late = 0;
  const auto next = [&](int calls) {
    while (true) {
      if (const auto s = sample(p, calls)) return *s;
      if (++late == 3)
        throw Error("nccl", "the host takes longer than the blocking kernels wait",
                    "other programs keep the host busy");
    }
  };
  t.calls = calls_per_sample(std::max(next(2), Seconds{1e-7}), most_calls);
  next(t.calls);
  while (!enough(times, spent, rule)) {
    const Seconds one = next(t.calls);
    times.push_back(one.value);
    spent += one * t.calls;
  }
  t.time = statistics(times);
  t.samples = static_cast<int>(times.size());
  return t;
}

}  // namespace vlmest::bench::nccl
