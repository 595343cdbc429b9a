// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bench/harness/blocker.hpp>
#include <bench/harness/result.hpp>
#include <bench/nccl/library.hpp>
#include <bench/nccl/point.hpp>
#include <kernels/cuda/buffer.hpp>
#include <kernels/cuda/event.hpp>
#include <kernels/cuda/stream.hpp>

namespace vlmest::bench::nccl {

/// A rank on each device that this process sees.
class Ranks {
 public:
  /// With room for tensors of so many bytes, on two devices or more. Throws Error where NCCL is missing.
  explicit Ranks(Bytes most);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  int count() const { return static_cast<int>(ranks_.size()); }
  std::string version() const { return library_.version(); }

  /// Times one collective with events on every device, as several calls in a row behind blocking kernels: the host has
  /// launched them all before the first begins. A sample is that of the rank that took longest. A send goes from the
  /// first rank to the second.
  Timing measure(const Point& p, const StopRule& rule);

 private:
  struct Rank {
    Rank(int device, Bytes most);
    cuda::Stream stream;
    cuda::Event from, to;
    cuda::Buffer in, out;
    Blocker blocker;
    void* communicator = nullptr;
  };

  void call(const Point& p);
  /// The time of one of `calls`; nothing where a blocker gave up.
  std::optional<Seconds> sample(const Point& p, int calls);
  /// Those that take part.
  int taking_part(const Point& p) const { return p.kind == CollectiveKind::send ? 2 : count(); }

  Library library_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

/// Devices that this process sees.
int devices();

}  // namespace vlmest::bench::nccl
