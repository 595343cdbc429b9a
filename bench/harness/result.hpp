// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <bench/harness/counters.hpp>
#include <bench/harness/kernel_trace.hpp>
#include <bench/harness/nvml.hpp>
#include <bench/harness/predict.hpp>

namespace vlmest::bench {

/// The samples of one point. Seconds are of one call.
struct Timing {
  Statistics time;
  int samples = 0;
  int calls = 0;         ///< in each sample
  double clock_mhz = 0;  ///< the multiprocessors', median of the samples; 0 where it was not seen
};

/// Everything that was found out about one point.
struct Result {
  Prediction predicted;
  Timing timing;
  DeviceState state;
  bool throttled = false;
  std::optional<Bytes> device_bytes;  ///< most that its operands and workspace took from the pool
  std::optional<Counted> counted;
  std::optional<Traced> traced;
  std::optional<TileWalk> walk;  ///< of a product's kernel
};

}  // namespace vlmest::bench
