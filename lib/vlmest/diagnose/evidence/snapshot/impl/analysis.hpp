// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <tuple>

#include <vlmest/diagnose/evidence/snapshot/analysis.hpp>
#include <vlmest/diagnose/evidence/snapshot/replayable.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE CodeSite code_site(const CallStackTraits& t, bool training, bool stackless) {
  CodeSite s{t.program, t.user, CodePart::other, (t.all & trait::vision) != 0, false, stage_of(t, training, stackless)};
  const std::array<std::pair<Traits, CodePart>, 8> parts{{{trait::in_cache, CodePart::kv_cache},
                                                          {trait::loss, CodePart::loss},
                                                          {trait::fft, CodePart::fft},
                                                          {trait::attention, CodePart::attention},
                                                          {trait::mask, CodePart::mask},
                                                          {trait::linear, CodePart::linear},
                                                          {trait::norm, CodePart::norm},
                                                          {trait::embedding, CodePart::embedding}}};
  for (const auto& [trait, part] : parts)
    if ((t.innermost & trait) != 0) {
      s.part = part;
      break;
    }
  return s;
}

VLMEST_INLINE std::int64_t device_of_interest(const RecordedSnapshot& s) {
  std::int64_t best = 0;
  for (std::size_t d = 0; d < s.traces.size(); ++d)
    for (const auto& e : s.traces[d])
      if (e.action == allocator::TraceAction::oom) return static_cast<std::int64_t>(d);
  std::map<std::int64_t, Bytes> reserved;
  for (const auto& g : s.segments) reserved[g.device] += g.size;
  Bytes most{-1};
  for (const auto& [device, bytes] : reserved)
    if (bytes > most) {
      most = bytes;
      best = device;
    }
  return best;
}

VLMEST_INLINE SnapshotAnalysis analyse(const RecordedSnapshot& s, std::int64_t device) {
  allocator::AllocatorConfig config;
  try {
    config = allocator_config(s);
  } catch (const Error&) {
    // Only the rounding of sizes depends on it, and torch's default is what nearly everybody runs.
  }
  const auto trace = trace_of(s, device);
  const auto traits = stack_traits(s.stacks);
  SnapshotAnalysis a;
  a.timeline = timeline(s, device, config);
  a.stages = stages_of(s, trace, traits);
  a.roles = memory_roles_of(trace, a.timeline, a.stages, traits);
  const ScoreLines scores(s.stacks, traits, a.timeline.allocations);
  const auto site_of = [&](StackTable::Stack stack) {
    CodeSite site = code_site(traits[stack], a.stages.training, stack == 0);
    site.scores = scores.holds(stack, traits[stack]);
    return site;
  };
  a.moment = a.timeline.peak_at;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].action != allocator::TraceAction::oom) continue;
    const auto& e = trace[i];
    // What is free on a device never exceeds what a Count holds; a broken file may say otherwise.
    const auto free = static_cast<std::int64_t>(std::min<std::uint64_t>(e.address, allocator::max_request));
    a.oom = {i, e.size, segment_size(config, e.size), Bytes(free), e.stack, e.stream, e.time_us};
    a.oom_site = site_of(e.stack);
    a.moment = i;
    ++a.ooms;
  }

  std::map<std::tuple<StackTable::Stack, MemoryRole>, std::size_t> known;
  for (std::size_t i = 0; i < a.timeline.allocations.size(); ++i) {
    const auto& x = a.timeline.allocations[i];
    if (!x.active_at(a.moment)) continue;
    const auto [at, fresh] = known.try_emplace({x.stack, a.roles[i]}, a.groups.size());
    if (fresh) a.groups.push_back({x.stack, a.roles[i], site_of(x.stack), 0, {}, {}, {}});
    auto& g = a.groups[at->second];
    ++g.count;
    g.bytes += x.size;
    g.requested += x.requested;
    g.largest = std::max(g.largest, x.requested);
    auto& sum = a.by_role[static_cast<std::size_t>(a.roles[i])];
    ++sum.count;
    sum.bytes += x.size;
    a.live += x.size;
  }
  sort_stably(a.groups, [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
  a.reserved = reserved_memory(s, device, trace, a.timeline, a.moment, a.oom);
  a.growth = growth(s, device, trace, a.timeline, a.stages);
  return a;
}

}  // namespace vlmest::diagnose
