// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <vlmest/diagnose/trace/gpu_time.hpp>

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
inline std::vector<Arrival> arrivals(const ProfileTrace& t, const GpuTime& g) {
  std::unordered_map<std::int64_t, Ns> called;
  called.reserve(t.calls.size());
  for (const auto& c : t.calls)
    if (c.correlation != 0 && g.hosted(c.process)) called.emplace(c.correlation, c.time.begin);
  std::vector<Arrival> r;
  const auto add = [&](const auto& e) {
    if (e.device != g.device || e.time.begin < g.window.begin || e.time.begin >= g.window.end) return;
    const auto c = e.correlation == 0 ? called.end() : called.find(e.correlation);
    r.push_back({e.time.begin, c == called.end() ? 0 : c->second, c != called.end()});
  };
  for (const auto& k : t.kernels) add(k);
  for (const auto& c : t.copies) add(c);
  std::sort(r.begin(), r.end(), [](const Arrival& a, const Arrival& b) { return a.begin < b.begin; });
  return r;
}

}  // namespace idle_detail

namespace idle_detail {

/// Numbers of what ran on other devices alone: DataParallel launches on each from a thread of one process.
inline std::unordered_set<std::int64_t> elsewhere(const ProfileTrace& t, const GpuTime& g) {
  std::unordered_set<std::int64_t> r;
  const auto each = [&](auto f) {
    for (const auto& k : t.kernels) f(k.device, k.correlation);
    for (const auto& c : t.copies) f(c.device, c.correlation);
  };
  each([&](std::int32_t device, std::int64_t n) {
    if (device != g.device && n != 0) r.insert(n);
  });
  if (!r.empty())
    each([&](std::int32_t device, std::int64_t n) {
      if (device == g.device) r.erase(n);
    });
  return r;
}

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
inline IdleTime idle_time(const ProfileTrace& t, const GpuTime& g) {
  IdleTime r;
  std::unordered_set<std::int64_t> launching;
  const auto launches = [](const HostCall& c) {
    return c.kind == HostCallKind::launch || c.kind == HostCallKind::graph_launch;
  };
  const std::unordered_set<std::int64_t> elsewhere = idle_detail::elsewhere(t, g);
  for (const auto& c : t.calls)
    if (launches(c) && g.hosted(c.process) && !elsewhere.contains(c.correlation)) launching.insert(c.thread);
  std::vector<Interval> loading, allocating, profiling, synchronising;
  std::unordered_map<std::int64_t, std::pair<Interval, std::int64_t>> threads;  // first and last launch, and how many
  const auto inside = [&](Interval i) { return i.end > g.window.begin && i.begin < g.window.end; };
  for (const auto& c : t.calls) {
    if (!inside(c.time) || !g.hosted(c.process) || !launching.contains(c.thread)) continue;
    if (launches(c) && !elsewhere.contains(c.correlation)) {
      (c.kind == HostCallKind::launch ? r.launches : r.graph_launches).add(c.time);
      auto [at, is_new] = threads.try_emplace(c.thread, Interval{c.time.begin, c.time.begin}, 0);
      auto& [range, n] = at->second;
      range = {std::min(range.begin, c.time.begin), std::max(range.end, c.time.begin)};
      ++n;
    }
    if (c.kind == HostCallKind::synchronise) r.synchronisations.add(c.time), synchronising.push_back(c.time);
    if (c.kind == HostCallKind::allocate) r.allocations.add(c.time), allocating.push_back(c.time);
    if (c.kind == HostCallKind::free) r.frees.add(c.time), allocating.push_back(c.time);
  }
  for (const auto& a : t.annotations) {
    if (!g.hosted(a.process)) continue;
    if (a.kind == AnnotationKind::data_loader) loading.push_back(a.time);
    if (a.kind == AnnotationKind::profiler) profiling.push_back(a.time);
  }
  Ns spanned = 0;
  std::int64_t between = 0;
  for (const auto& [thread, range] : threads) {
    spanned = checked_add(spanned, range.first.length());
    between += range.second - 1;
  }
  r.launch_interval = between > 0 ? spanned / between : 0;

  TimeSet rest = gaps(g.window, g.busy);
  const TimeSet all_gaps = rest;
  r.gaps = static_cast<std::int64_t>(rest.size());
  for (const Interval& i : rest) r.longest_gap = std::max(r.longest_gap, i.length());
  const auto take = [&](Idle cause, std::vector<Interval>& parts) {
    const TimeSet set = united(std::move(parts));
    const Ns before = length(rest);
    rest = difference(rest, set);
    r.by_cause[static_cast<std::size_t>(cause)] = before - length(rest);
  };
  const TimeSet synchronised = united(synchronising);
  take(Idle::data_loader, loading);
  take(Idle::allocation, allocating);
  take(Idle::profiler, profiling);

  const std::vector<idle_detail::Arrival> next = idle_detail::arrivals(t, g);
  const std::vector<const CpuOp*> long_ops = idle_detail::long_ops(t);
  std::unordered_map<NameId, Ns> worked;
  std::size_t a = 0, s = 0, p = 0;
  for (const Interval& gap : all_gaps) {
    Ns left = 0;
    for (; p < rest.size() && rest[p].end <= gap.end; ++p) left += rest[p].length();
    while (a < next.size() && next[a].begin < gap.end) ++a;
    while (s < synchronised.size() && synchronised[s].end < gap.begin) ++s;
    Idle cause = Idle::unknown;
    const bool known = a < next.size() && next[a].known;
    if (known && next[a].launched < gap.begin)
      cause = Idle::queued;
    else if (s < synchronised.size() && synchronised[s].begin < (known ? next[a].launched : gap.end))
      cause = idle_detail::late(synchronised[s], known ? next[a].launched : gap.end, gap) ? Idle::launch
                                                                                          : Idle::synchronise;
    else if (known || (a == next.size() && g.window.end == gap.end && !launching.empty()))
      cause = Idle::launch;
    if (cause == Idle::launch && left >= long_gap) {
      cause = Idle::host_work;
      worked[idle_detail::around(long_ops, gap)] += left;
    }
    r.by_cause[static_cast<std::size_t>(cause)] += left;
  }
  Ns most = 0;
  for (const auto& [op, ns] : worked)
    if (ns > most) most = ns, r.working = op;
  return r;
}

}  // namespace vlmest::diagnose
