// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include <vlmest/diagnose/evidence/trace/idle_time.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest::diagnose {

/// The same run on a host that no profiler slows down.
struct UnprofiledRun {
  bool estimated = false;
  Ns per_record = 0;  ///< what the profiler took of the host for each thing that it recorded
  Ns span = 0;        ///< of the window
  std::array<Ns, idle_causes.size()> by_cause{};
  Ns of(Idle i) const { return by_cause[static_cast<std::size_t>(i)]; }
  Ns host() const { return host_share(by_cause); }
};

/// Host time between two calls, in launches, above which it is not the framework's way to the next kernel.
inline constexpr double longest_ordinary = 100;

namespace unprofiled_detail {

/// A call that brings the device work or waits for it, and the host's own time before it.
struct Step {
  const HostCall* call = nullptr;
  Ns work = 0;     ///< that it brings the device, each moment counted once
  Ns own = 0;      ///< host time since the call before
  Ns loading = 0;  ///< of the time since then, in the data loader
  Ns stalled = 0;  ///< in cudaMalloc or cudaFree while the device was idle
  std::int64_t records = 0;
  bool blocked = false;  ///< it came back only when what it brought had ended
};

/// How much of `set` lies before a time that only grows.
class Cover {
 public:
  explicit Cover(const TimeSet& set) : set_(set) {}
  Ns until(Ns t) {
    while (at_ < set_.size() && set_[at_].end <= t) sum_ += set_[at_++].length();
    return sum_ + (at_ < set_.size() && set_[at_].begin < t ? t - set_[at_].begin : 0);
  }

 private:
  const TimeSet& set_;
  std::size_t at_ = 0;
  Ns sum_ = 0;
};

struct Arrived {
  Ns work = 0, end = 0;
};

/// What each call brought to the device, and what nothing is known to have brought.
std::unordered_map<std::int64_t, Arrived> brought(const ProfileTrace& t, const GpuTime& g, Ns& orphans);

/// The launching threads' calls in order.
std::vector<Step> steps(const ProfileTrace& t, const GpuTime& g, Ns& orphans);

}  // namespace unprofiled_detail

/// A profiler that records every operator with its arguments takes several times as long for it as the operator itself,
/// and makes the device wait. `launch` is what a kernel's launch takes without one (Device::launch). What lies between
/// two calls of the host is shortened so that launches take this long on average; stretches of more than a hundred of
/// these, where the host does something else, only by their records. Then the calls run once more: the device begins
/// with what a call brings when it has come and all before it has ended, the host waits where it waited. Nothing is
/// estimated where launches took no longer than that, or a tenth of the device's time has no call in the trace.
UnprofiledRun unprofiled_run(const ProfileTrace& t, const GpuTime& g, Seconds launch);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/unprofiled.hpp>
#endif
