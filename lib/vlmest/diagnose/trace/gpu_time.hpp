// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <vlmest/diagnose/trace/intervals.hpp>
#include <vlmest/diagnose/trace/kernel_family.hpp>
#include <vlmest/diagnose/trace/profile_trace.hpp>

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
inline std::vector<std::int64_t> hosts(const ProfileTrace& t, std::int32_t device) {
  std::vector<std::int64_t> r;
  const auto other = [&](const HostCall& c) { return c.process != t.calls.front().process; };
  if (std::none_of(t.calls.begin(), t.calls.end(), other)) return r;
  std::unordered_set<std::int64_t> brought;
  const auto add = [&](const auto& e) {
    if (e.device == device && e.correlation != 0) brought.insert(e.correlation);
  };
  for (const auto& k : t.kernels) add(k);
  for (const auto& c : t.copies) add(c);
  for (const auto& c : t.calls)
    if ((r.empty() || r.back() != c.process) && brought.contains(c.correlation)) r.push_back(c.process);
  std::sort(r.begin(), r.end());
  r.erase(std::unique(r.begin(), r.end()), r.end());
  return r;
}

/// Steps are what a run repeats; what the device does after the host has left the last one belongs to it. A file that
/// was cut knows the device up to some time only.
inline Interval window(const ProfileTrace& t, const GpuTime& g) {
  Interval active{latest_time * 2 - 1, -latest_time * 2 + 1}, steps = active;
  const auto widen = [](Interval& w, Interval i) {
    w.begin = std::min(w.begin, i.begin);
    w.end = std::max(w.end, i.end);
  };
  for (const auto& k : t.kernels)
    if (k.device == g.device) widen(active, k.time);
  for (const auto& c : t.copies)
    if (c.device == g.device) widen(active, c.time);
  for (const auto& a : t.annotations)
    if (a.kind == AnnotationKind::step && g.hosted(a.process)) widen(steps, a.time);
  if (active.begin > active.end) return {};
  if (steps.begin > steps.end || active.end <= steps.begin) return active;
  return {steps.begin, t.truncated ? active.end : std::max(steps.end, active.end)};
}

inline Interval clipped(Interval i, Interval w) { return {std::max(i.begin, w.begin), std::min(i.end, w.end)}; }

}  // namespace gpu_time_detail

/// What a kernel's name tells, for each name that kernels have.
inline std::vector<KernelTraits> traits_of_names(const ProfileTrace& t) {
  std::vector<KernelTraits> r(t.names.size());
  std::vector<bool> known(t.names.size());
  for (const auto& k : t.kernels) {
    const auto n = static_cast<std::size_t>(k.name);
    if (known[n]) continue;
    known[n] = true;
    r[n] = kernel_traits(t.names[k.name]);
  }
  return r;
}

/// The time of one device. Kernels that begin outside the window are not counted.
inline GpuTime gpu_time(const ProfileTrace& t, std::int32_t device, const std::vector<KernelTraits>& traits) {
  GpuTime g{.device = device};
  g.hosts = gpu_time_detail::hosts(t, device);
  g.window = gpu_time_detail::window(t, g);
  std::vector<Interval> computing, communicating, copying, host_copies;
  std::vector<Totals> by_name(t.names.size());
  const auto inside = [&](Interval i) { return i.begin >= g.window.begin && i.begin < g.window.end; };
  for (const auto& k : t.kernels) {
    if (k.device != device || !inside(k.time)) continue;
    const KernelTraits& traits_of = traits[static_cast<std::size_t>(k.name)];
    const bool talks = traits_of.family == KernelFamily::communication;
    (talks ? communicating : computing).push_back(gpu_time_detail::clipped(k.time, g.window));
    g.families[static_cast<std::size_t>(traits_of.family)].add(k.time);
    by_name[static_cast<std::size_t>(k.name)].add(k.time);
    g.all_kernels.add(k.time);
    if (traits_of.misaligned) g.misaligned.add(k.time);
  }
  for (const auto& c : t.copies) {
    if (c.device != device || !inside(c.time)) continue;
    const bool host = c.kind == CopyKind::host_to_device || c.kind == CopyKind::device_to_host;
    (host ? host_copies : copying).push_back(gpu_time_detail::clipped(c.time, g.window));
    CopyTotals& of_kind = g.copies[static_cast<std::size_t>(c.kind)];
    of_kind.add(c.time);
    of_kind.bytes += c.bytes;
    if (c.pageable) of_kind.pageable.add(c.time);
  }
  g.computing = united(std::move(computing));
  g.communicating = united(std::move(communicating));
  g.exposed_communication = length(difference(g.communicating, g.computing));
  std::vector<Interval> all = g.computing;
  all.insert(all.end(), g.communicating.begin(), g.communicating.end());
  all.insert(all.end(), copying.begin(), copying.end());
  const TimeSet on_device = united(all);
  const TimeSet from_host = united(std::move(host_copies));
  g.exposed_copies = length(difference(from_host, on_device));
  all.insert(all.end(), from_host.begin(), from_host.end());
  g.busy = united(std::move(all));
  for (std::size_t n = 0; n < by_name.size(); ++n)
    if (by_name[n].count > 0) g.kernels.push_back({by_name[n], static_cast<NameId>(n)});
  std::stable_sort(g.kernels.begin(), g.kernels.end(), [](auto& a, auto& b) { return a.time > b.time; });
  return g;
}

}  // namespace vlmest::diagnose
