// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <vlmest/unit/rate.hpp>

namespace vlmest::bench {

/// Holds a stream until the host has put a whole sample into it, so that the device runs the sample without waiting for
/// launches: a kernel that spins on a flag in the host's memory. It gives up after a timeout, so that nothing hangs
/// where the host cannot go on (a launch that waits for the stream, a failure between block and release).
class Blocker {
 public:
  explicit Blocker(Seconds timeout = {0.25});
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;
  ~Blocker();

  void block(cudaStream_t stream);
  /// Lets everything go that was blocked so far.
  void release();
  /// The last block gave up before it was released: the sample has gaps in it. Valid once the stream has passed it.
  bool timed_out() const;

 private:
  struct Shared;
  Shared* shared_ = nullptr;
  std::int32_t ticket_ = 0;
  std::uint64_t timeout_ns_;
};

/// One multiprocessor's counters at one moment.
struct ClockReading {
  std::uint64_t time_ns;
  std::int64_t cycles;
};

/// The multiprocessors' clock between two points of a stream, from their cycle counters and the device's timer.
class ClockProbe {
 public:
  ClockProbe();
  ClockProbe(const ClockProbe&) = delete;
  ClockProbe& operator=(const ClockProbe&) = delete;
  ~ClockProbe();

  void begin(cudaStream_t stream);
  void end(cudaStream_t stream);
  /// In MHz, the median over multiprocessors; 0 where none was seen twice or too little time lies between. Valid once
  /// the stream has passed end().
  double mhz() const;

 private:
  void read(ClockReading* into, cudaStream_t stream);
  int multiprocessors_ = 0;
  ClockReading* readings_ = nullptr;  ///< of the host, mapped: begin's for each multiprocessor, then end's
};

/// A kernel that does nothing: the smallest there is.
void launch_empty(cudaStream_t stream);

}  // namespace vlmest::bench
