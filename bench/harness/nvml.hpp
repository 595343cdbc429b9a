// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace vlmest::bench {

/// What the driver says of a GPU at one moment; zero where it does not.
struct DeviceState {
  double power_w = 0;
  double sm_clock_mhz = 0;
  /// The clock is held down: by the power cap, by heat, by the board's supply. Not by being idle or by its settings.
  bool throttled = false;
};

/// The driver's management library, NVML, loaded at run time: its header is no part of the CUDA toolkit, and a machine
/// without it is measured all the same. Reads only, and changes no setting.
class Nvml {
 public:
  /// Of the current CUDA device. Where the library or the device is not found, readings stay empty.
  Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  bool found() const { return device_ != nullptr; }
  /// Read again at most every 20 ms: on some machines a reading takes milliseconds.
  const DeviceState& state();
  /// "580.159.04", or nothing.
  std::string driver_version() const;

 private:
  template <class F>
  F function(const char* name) const;
  double power() const;

  void* library_ = nullptr;
  void* device_ = nullptr;
  DeviceState state_;
  std::chrono::steady_clock::time_point read_{};
};

}  // namespace vlmest::bench
