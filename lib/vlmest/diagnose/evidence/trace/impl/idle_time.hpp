// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include <vlmest/diagnose/evidence/trace/idle_time.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace idle_detail {

VLMEST_INLINE std::vector<Arrival> arrivals(const ProfileTrace& t, const GpuTime& g) {
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

VLMEST_INLINE std::unordered_set<std::int64_t> elsewhere(const ProfileTrace& t, const GpuTime& g) {
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

}  // namespace idle_detail

VLMEST_INLINE IdleTime idle_time(const ProfileTrace& t, const GpuTime& g) {
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
