// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <bench/harness/operands.hpp>
#include <bench/harness/pool.hpp>
#include <bench/harness/result.hpp>
#include <bench/harness/timer.hpp>

namespace vlmest::bench {

struct Settings {
  StopRule rule;
  Seconds warm_up{};             ///< of each point, before its first sample
  bool counters = false;         ///< read DRAM bytes, L2 bytes and tensor operations
  bool kernel_times = false;     ///< read the kernels' own durations
  std::optional<Device> device;  ///< the description that predictions are made with
};

/// Measures points on the current device, one after the other, with the same stream, pool and libraries.
class Bench {
 public:
  explicit Bench(Settings settings);

  /// Throws Error for a point that does not fit into the device's memory, with the number that the library computed,
  /// and for one that its kernel cannot do.
  Result measure(const Point& p);

  const Settings& settings() const { return settings_; }
  const Nvml& nvml() const { return nvml_; }
  /// Why counters are not read though they were asked for; empty where they are.
  const std::string& no_counters() const { return no_counters_; }
  const std::string& no_kernel_times() const { return no_kernel_times_; }
  double most_clock_mhz() const { return most_clock_mhz_; }

 private:
  void require_memory(const Point& p, const Prediction& predicted) const;
  void count(const Point& p, const Prepared& prepared, const Timed& timed, Result& result);
  void trace(const Timed& timed, Result& result);

  Settings settings_;
  int compute_capability_;
  Bytes l2_;
  double most_clock_mhz_ = 0;
  std::uint64_t seed_ = 0x5eed;
  Timer timer_;
  Pool pool_;
  Nvml nvml_;
  std::unique_ptr<Counters> counters_;
  std::unique_ptr<KernelTrace> trace_;
  bool counted_ = false;  ///< counters were read at least once
  std::string no_counters_, no_kernel_times_;
};

}  // namespace vlmest::bench
