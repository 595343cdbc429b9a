// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include <vlmest/diagnose/evidence/trace/intervals.hpp>
#include <vlmest/diagnose/evidence/trace/kernel_family.hpp>
#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

/// Where the time of a device went: kernels, copies, communication. Intervals of several streams count once where they
/// overlap.
namespace vlmest::diagnose {

/// Of one kind of thing: how many, and the sum of their lengths (of parallel streams more than the clock shows).
struct Totals {
  std::int64_t count = 0;
  Ns time = 0;
  void add(Interval i) {
    ++count;
    time = checked_add(time, i.length());
  }
};

struct CopyTotals : Totals {
  Bytes bytes{};
  Totals pageable;  ///< of them, those from or to host memory that is not page-locked
};

struct NamedTotals : Totals {
  NameId name = 0;
};

inline constexpr std::size_t copy_kinds = static_cast<std::size_t>(CopyKind::other) + 1;

struct GpuTime {
  std::int32_t device = 0;
  Interval window;        ///< from the first step to the end of the last; without steps, of the device's activity
  TimeSet busy;           ///< anything runs on the device
  TimeSet computing;      ///< kernels other than communication
  TimeSet communicating;  ///< communication
  Ns exposed_communication = 0;  ///< while nothing computes
  Ns exposed_copies = 0;         ///< copies from and to the host while no kernel runs
  std::array<CopyTotals, copy_kinds> copies{};
  std::array<Totals, kernel_families.size()> families{};
  std::vector<NamedTotals> kernels;  ///< by name, the longest first
  Totals all_kernels;
  Totals misaligned;                ///< by their names
  std::vector<std::int64_t> hosts;  ///< the processes that gave the device its work, in order; none: not known

  /// Whether a process of the host is one of them.
  bool hosted(std::int64_t process) const {
    return hosts.empty() || std::binary_search(hosts.begin(), hosts.end(), process);
  }
  Ns span() const { return window.length(); }
  Ns busy_time() const { return length(busy); }
  Ns idle() const { return span() - busy_time(); }
  double share(Ns t) const { return span() > 0 ? static_cast<double>(t) / static_cast<double>(span()) : 0; }
};

/// The device on which the most time was spent; 0 where nothing ran.
inline std::int32_t busiest_device(const ProfileTrace& t) {
  std::map<std::int32_t, Ns> time;
  for (const auto& k : t.kernels) time[k.device] = checked_add(time[k.device], k.time.length());
  for (const auto& c : t.copies) time[c.device] = checked_add(time[c.device], c.time.length());
  const auto most = std::max_element(time.begin(), time.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == time.end() ? 0 : most->first;
}

namespace gpu_time_detail {

/// Processes whose calls brought the device something: a recording of several ranks has the calls of all of them.
std::vector<std::int64_t> hosts(const ProfileTrace& t, std::int32_t device);

/// Steps are what a run repeats; what the device does after the host has left the last one belongs to it. A file that
/// was cut knows the device up to some time only.
Interval window(const ProfileTrace& t, const GpuTime& g);

inline Interval clipped(Interval i, Interval w) { return {std::max(i.begin, w.begin), std::min(i.end, w.end)}; }

}  // namespace gpu_time_detail

/// What a kernel's name tells, for each name that kernels have.
std::vector<KernelTraits> traits_of_names(const ProfileTrace& t);

/// The time of one device. Kernels that begin outside the window are not counted.
GpuTime gpu_time(const ProfileTrace& t, std::int32_t device, const std::vector<KernelTraits>& traits);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/gpu_time.hpp>
#endif
