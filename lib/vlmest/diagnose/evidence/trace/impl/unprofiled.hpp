// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <vlmest/diagnose/evidence/trace/unprofiled.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace unprofiled_detail {

VLMEST_INLINE std::unordered_map<std::int64_t, Arrived> brought(const ProfileTrace& t, const GpuTime& g, Ns& orphans) {
  struct Activity {
    Interval time;
    std::int64_t correlation;
  };
  std::vector<Activity> all;
  const auto add = [&](const auto& e) {
    if (e.device == g.device && e.time.begin >= g.window.begin && e.time.begin < g.window.end)
      all.push_back({e.time, e.correlation});
  };
  for (const auto& k : t.kernels) add(k);
  for (const auto& c : t.copies) add(c);
  std::sort(all.begin(), all.end(), [](const Activity& a, const Activity& b) { return a.time < b.time; });
  std::unordered_map<std::int64_t, Arrived> r;
  Ns covered = g.window.begin;
  for (const Activity& a : all) {
    const Ns end = std::min(a.time.end, g.window.end), more = std::max<Ns>(0, end - std::max(covered, a.time.begin));
    covered = std::max(covered, end);
    if (a.correlation == 0) {
      orphans += more;
      continue;
    }
    Arrived& at = r[a.correlation];
    at.work += more;
    at.end = std::max(at.end, a.time.end);
  }
  return r;
}

VLMEST_INLINE std::vector<Step> steps(const ProfileTrace& t, const GpuTime& g, Ns& orphans) {
  std::unordered_map<std::int64_t, Arrived> work = brought(t, g, orphans);
  std::vector<const HostCall*> calls;
  for (const auto& c : t.calls)
    if (c.kind != HostCallKind::other && g.hosted(c.process) && c.time.end > g.window.begin &&
        c.time.begin < g.window.end)
      calls.push_back(&c);
  std::sort(calls.begin(), calls.end(), [](auto* a, auto* b) { return a->time < b->time; });
  std::vector<Ns> records;
  records.reserve(t.ops.size() + t.memory.size() + t.calls.size());
  for (const auto& o : t.ops) records.push_back(o.time.begin);
  for (const auto& m : t.memory) records.push_back(m.time);
  for (const auto& c : t.calls) records.push_back(c.time.begin);
  std::sort(records.begin(), records.end());
  std::vector<Interval> loading, profiling;
  for (const auto& a : t.annotations) {
    if (!g.hosted(a.process)) continue;
    if (a.kind == AnnotationKind::data_loader) loading.push_back(a.time);
    if (a.kind == AnnotationKind::profiler) profiling.push_back(a.time);
  }
  const TimeSet idle = gaps(g.window, g.busy), loader = united(std::move(loading));
  const TimeSet profiler = difference(united(std::move(profiling)), loader);
  Cover loaded(loader), profiled(profiler);
  std::size_t gap = 0, record = 0;
  Ns last = g.window.begin, loaded_then = loaded.until(last), profiled_then = profiled.until(last), inside = 0;
  while (record < records.size() && records[record] < last) ++record;
  std::vector<Step> r;
  for (const HostCall* c : calls) {
    Step s{.call = c};
    const Ns begin = std::max(c->time.begin, last);
    const Ns loaded_now = loaded.until(begin), profiled_now = profiled.until(begin);
    s.loading = loaded_now - loaded_then;
    s.own = std::max<Ns>(0, begin - last - inside - s.loading - (profiled_now - profiled_then));
    loaded_then = loaded_now;
    profiled_then = profiled_now;
    for (; record < records.size() && records[record] <= begin; ++record) ++s.records;
    last = begin;
    // What the call itself takes is the host's own, unless it waits for the device or asks for its memory.
    inside = 0;
    if (const auto w = c->correlation == 0 ? work.end() : work.find(c->correlation); w != work.end()) {
      s.work = w->second.work;
      s.blocked = c->kind == HostCallKind::copy && c->time.end >= w->second.end;
      work.erase(w);
    }
    const bool memory = c->kind == HostCallKind::allocate || c->kind == HostCallKind::free;
    if (memory || s.blocked || c->kind == HostCallKind::synchronise) inside = std::max<Ns>(0, c->time.end - begin);
    if (memory) {
      while (gap < idle.size() && idle[gap].end <= begin) ++gap;
      for (std::size_t i = gap; i < idle.size() && idle[i].begin < c->time.end; ++i)
        s.stalled += std::max<Ns>(0, gpu_time_detail::clipped(idle[i], {begin, c->time.end}).length());
    }
    r.push_back(s);
  }
  for (const auto& [correlation, w] : work) orphans += w.work;
  return r;
}

}  // namespace unprofiled_detail

VLMEST_INLINE UnprofiledRun unprofiled_run(const ProfileTrace& t, const GpuTime& g, Seconds launch) {
  using namespace unprofiled_detail;
  UnprofiledRun r;
  if (g.span() <= 0 || t.ops.empty() || !(launch.value > 0)) return r;
  Ns orphans = 0;
  const std::vector<Step> all = steps(t, g, orphans);
  if (all.size() < 2 || orphans > g.busy_time() / 10) return r;
  const Ns ordinary = static_cast<Ns>(longest_ordinary * launch.value * 1e9);
  double seen = 0, launches = 0, records = 0;
  for (const Step& s : all) {
    if (s.own > ordinary) continue;
    seen += static_cast<double>(s.own);
    records += static_cast<double>(s.records);
    launches += s.call->kind == HostCallKind::launch ? 1 : 0;
  }
  const double without = launches * launch.value * 1e9;
  if (!(seen > without) || !(records > 0)) return r;
  const double factor = without / seen, per_record = (seen - without) / records;
  r.estimated = true;
  r.per_record = static_cast<Ns>(per_record);

  Ns host = 0, device = 0, loading = 0, stalled = 0;
  bool waited = false;
  const auto idle = [&](Idle cause, Ns ns) {
    r.by_cause[static_cast<std::size_t>(cause)] += ns;
    return ns;
  };
  for (const Step& s : all) {
    const auto scaled = factor * static_cast<double>(s.own);
    const auto less = static_cast<double>(s.own) - per_record * static_cast<double>(s.records);
    host = checked_add(host, static_cast<Ns>(s.own > ordinary ? std::max(scaled, less) : scaled) + s.loading);
    loading += s.loading;
    if (s.work > 0) {
      if (Ns gap = host - device; gap > 0) {
        gap -= idle(Idle::data_loader, std::min(gap, loading));
        gap -= idle(Idle::allocation, std::min(gap, stalled));
        idle(gap >= long_gap ? Idle::host_work : waited ? Idle::synchronise : Idle::launch, gap);
      }
      device = std::max(device, host) + s.work;
      loading = stalled = 0;
      waited = false;
    }
    const bool waits = s.blocked || s.call->kind == HostCallKind::synchronise || s.call->kind == HostCallKind::free;
    if (waits) host = std::max(host, device);
    waited = waited || (waits && s.call->kind != HostCallKind::free);
    host = checked_add(host, s.stalled);
    stalled = checked_add(stalled, s.stalled);
  }
  r.span = std::max(host, device);
  return r;
}

}  // namespace vlmest::diagnose
