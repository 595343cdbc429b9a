// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>

#include <bench/harness/nvml.hpp>
#include <cuda_runtime.h>
#include <dlfcn.h>

namespace vlmest::bench {
namespace {

// Names, numbers and layouts: NVML API Reference Guide, https://docs.nvidia.com/deploy/nvml-api/. Every function
// answers 0 where it succeeded.
using Answer = int;
constexpr unsigned clock_of_multiprocessors = 1;  // NVML_CLOCK_SM
constexpr unsigned instant_power = 186;           // NVML_FI_DEV_POWER_INSTANT, in milliwatts

/// Reasons for a low clock that belong to throttling: software power cap, hardware slowdown, software and hardware
/// thermal slowdown, power brake (nvmlClocksEventReasons).
constexpr unsigned long long throttling = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

/// nvmlFieldValue_t.
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  Answer answer;
  union {
    double d;
    unsigned u;
    std::uint64_t bytes;
  } value;
};

}  // namespace

template <class F>
F Nvml::function(const char* name) const {
  return library_ ? reinterpret_cast<F>(dlsym(library_, name)) : nullptr;
}

Nvml::Nvml() {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto start = function<Answer (*)()>("nvmlInit_v2");
  const auto find = function<Answer (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (!start || !find || start() != 0) return;
  // CUDA and NVML number devices differently; both know the place on the bus.
  std::array<char, 32> bus{};
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return;
  if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) != cudaSuccess) return;
  if (find(bus.data(), &device_) != 0) device_ = nullptr;
}
Nvml::~Nvml() {
  if (const auto stop = function<Answer (*)()>("nvmlShutdown")) static_cast<void>(stop());
  if (library_) static_cast<void>(dlclose(library_));
}

double Nvml::power() const {
  if (const auto fields = function<Answer (*)(void*, int, FieldValue*)>("nvmlDeviceGetFieldValues")) {
    FieldValue v{};
    v.field = instant_power;
    if (fields(device_, 1, &v) == 0 && v.answer == 0) return v.value.u / 1e3;
  }
  // An average over a second from Ampere on, but better than nothing.
  unsigned milliwatts = 0;
  const auto average = function<Answer (*)(void*, unsigned*)>("nvmlDeviceGetPowerUsage");
  return average && average(device_, &milliwatts) == 0 ? milliwatts / 1e3 : 0;
}

const DeviceState& Nvml::state() {
  const auto now = std::chrono::steady_clock::now();
  if (!device_ || now - read_ < std::chrono::milliseconds(20)) return state_;
  read_ = now;
  state_ = {};
  state_.power_w = power();
  unsigned mhz = 0;
  if (const auto clock = function<Answer (*)(void*, unsigned, unsigned*)>("nvmlDeviceGetClockInfo"))
    if (clock(device_, clock_of_multiprocessors, &mhz) == 0) state_.sm_clock_mhz = mhz;
  auto reasons = function<Answer (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksEventReasons");
  if (!reasons)  // its name before driver 535
    reasons = function<Answer (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  unsigned long long bits = 0;
  if (reasons && reasons(device_, &bits) == 0) state_.throttled = (bits & throttling) != 0;
  return state_;
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  const auto version = function<Answer (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  return version && version(text.data(), static_cast<unsigned>(text.size())) == 0 ? std::string(text.data())
                                                                                  : std::string();
}

}  // namespace vlmest::bench
