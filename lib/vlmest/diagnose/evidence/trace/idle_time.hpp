// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <vlmest/diagnose/evidence/trace/gpu_time.hpp>

namespace vlmest::diagnose {

/// Why a device had nothing to run. A gap is divided among the first three; what is left of it is one of the others.
enum class Idle : std::uint8_t {
  data_loader,  ///< the host waited for the next batch
  allocation,   ///< cudaMalloc, cudaFree: the caching allocator grows, or gives back and tries again
  profiler,     ///< the profiler's own work
  synchronise,  ///< the host had waited for the device (.item(), copies to the host), and begins to launch anew
  host_work,    ///< the host did something long, perhaps after it had waited: built a plan of cuDNN's, or ran Python
  launch,       ///< the host came with the next kernel only after the device had run dry
  queued,       ///< the next kernel was there already: the device's own time between two kernels
  unknown       ///< the call that brought the next kernel is not in the trace
};

inline constexpr std::array<std::string_view, 8> idle_causes{"data_loader", "allocation", "profiler", "synchronise",
                                                             "host_work",   "launch",     "queued",   "unknown"};
constexpr std::string_view name(Idle i) { return idle_causes[static_cast<std::size_t>(i)]; }

/// What the host is to blame for.
inline Ns host_share(const std::array<Ns, idle_causes.size()>& by_cause) {
  Ns sum = 0;
  for (const Idle i : {Idle::data_loader, Idle::allocation, Idle::synchronise, Idle::host_work, Idle::launch})
    sum += by_cause[static_cast<std::size_t>(i)];
  return sum;
}

/// A gap from this length on is the host's other work, not its way from one launch to the next, which takes some ten
/// microseconds in a framework that runs eagerly.
inline constexpr Ns long_gap = 1'000'000;

/// The idle time of a device and the calls of the host, in the same window.
struct IdleTime {
  std::array<Ns, idle_causes.size()> by_cause{};
  Ns longest_gap = 0;
  std::int64_t gaps = 0;
  Totals launches;        ///< of kernels
  Totals graph_launches;  ///< of whole CUDA graphs
  Totals synchronisations, allocations, frees;
  NameId working = 0;      ///< the operator that the most of Idle::host_work passed in; none: Python between them
  Ns launch_interval = 0;  ///< mean, from the beginning of one launch to the next of the same thread

  Ns of(Idle i) const { return by_cause[static_cast<std::size_t>(i)]; }
  Ns host() const { return host_share(by_cause); }
};

namespace idle_detail {

struct Arrival {
  Ns begin = 0;     ///< of what runs after a gap
  Ns launched = 0;  ///< when the host called for it
  bool known = false;
};

/// Beginnings of what ran on the device, in order, with the beginnings of the calls that brought it.
std::vector<Arrival> arrivals(const ProfileTrace& t, const GpuTime& g);

}  // namespace idle_detail

namespace idle_detail {

/// Numbers of what ran on other devices alone: DataParallel launches on each from a thread of one process.
std::unordered_set<std::int64_t> elsewhere(const ProfileTrace& t, const GpuTime& g);

/// Operators that last at least as long as a long gap, by their beginning.
inline std::vector<const CpuOp*> long_ops(const ProfileTrace& t) {
  std::vector<const CpuOp*> r;
  for (const auto& o : t.ops)
    if (o.time.length() >= long_gap / 2) r.push_back(&o);
  std::sort(r.begin(), r.end(), [](auto* a, auto* b) { return a->time.begin < b->time.begin; });
  return r;
}

/// Whether the host, once it had waited, took a long gap's time and most of this gap until it launched again: not the
/// wait, what it did then is to blame.
inline bool late(Interval waited, Ns launched, Interval gap) {
  const Ns after = launched - std::max(waited.end, gap.begin);
  return after >= long_gap && 2 * after > gap.length();
}

/// The innermost of them that covers most of a gap.
inline NameId around(const std::vector<const CpuOp*>& ops, Interval gap) {
  const Ns middle = gap.begin + gap.length() / 2;
  auto at = std::upper_bound(ops.begin(), ops.end(), middle, [](Ns t, auto* o) { return t < o->time.begin; });
  for (int tries = 64; at != ops.begin() && tries > 0; --tries)
    if (const CpuOp& o = **--at; o.time.end > middle && 2 * o.time.length() >= gap.length()) return o.name;
  return 0;
}

}  // namespace idle_detail

/// Divides the gaps of `g.busy`. Calls of threads that launch nothing on the device (a communication library's
/// watchdog, another device's thread), or of other devices' processes, are not looked at.
IdleTime idle_time(const ProfileTrace& t, const GpuTime& g);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/idle_time.hpp>
#endif
