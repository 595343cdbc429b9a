// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_set>

#include <vlmest/diagnose/evidence/trace/gpu_time.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace gpu_time_detail {

VLMEST_INLINE std::vector<std::int64_t> hosts(const ProfileTrace& t, std::int32_t device) {
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

VLMEST_INLINE Interval window(const ProfileTrace& t, const GpuTime& g) {
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

}  // namespace gpu_time_detail

VLMEST_INLINE std::vector<KernelTraits> traits_of_names(const ProfileTrace& t) {
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

VLMEST_INLINE GpuTime gpu_time(const ProfileTrace& t, std::int32_t device, const std::vector<KernelTraits>& traits) {
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
  sort_stably(g.kernels, [](auto& a, auto& b) { return a.time > b.time; });
  return g;
}

}  // namespace vlmest::diagnose
