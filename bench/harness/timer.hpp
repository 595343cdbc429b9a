// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <bench/harness/blocker.hpp>
#include <bench/harness/point.hpp>
#include <bench/harness/result.hpp>
#include <kernels/cuda/event.hpp>
#include <kernels/cuda/stream.hpp>

namespace vlmest::bench {

/// An op as the timer sees it.
struct Timed {
  /// Puts one execution into a stream, on the operands whose turn it is.
  std::function<void(cudaStream_t stream)> call;
  int launches = 1;  ///< of one call, at most: a stream takes about a thousand that wait
};

/// Times calls with events on the device, each sample as one uninterrupted run behind a Blocker.
///
/// Cold: calls in a stream, one after the other. Hot: a CUDA graph of calls, all on the operands of the first.
class Timer {
 public:
  /// Runs its own kernels once: loading one waits for the stream, which must not happen behind the blocker.
  Timer();

  const cuda::Stream& stream() const { return stream_; }

  /// `during` is called once while a sample runs on the device: the place to read power. The call runs for `warm_up`
  /// first, and on while the multiprocessors' clock lies below `low_clock_mhz` and rises. Throws Error for a failing
  /// launch, and where the host cannot fill a sample before the blocker gives up.
  Timing measure(const Timed& timed, Cache cache, const StopRule& rule, Seconds warm_up, double low_clock_mhz,
                 const std::function<void()>& during);

  /// The host's time for one call, of many in a row into an empty stream.
  Timing measure_host(const Timed& timed, const StopRule& rule);

 private:
  void sample(const std::function<void()>& work);
  Seconds first_guess(const Timed& timed);
  void settle(const std::function<void()>& work, double low_clock_mhz);

  cuda::Stream stream_;
  cuda::Event from_, to_;
  Blocker blocker_;
  ClockProbe clock_;
};

}  // namespace vlmest::bench
