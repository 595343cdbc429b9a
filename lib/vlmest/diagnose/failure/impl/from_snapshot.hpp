// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/diagnose/failure/from_snapshot.hpp>
#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace snapshot_failure {

VLMEST_INLINE AllocationSite site_of(const CodeSite& site, const std::vector<Frame>& frames) {
  if (site.scores) return AllocationSite::score_matrix;
  switch (site.part) {
    case CodePart::mask: return AllocationSite::attention_mask;
    case CodePart::loss: return AllocationSite::cross_entropy;
    case CodePart::norm: return AllocationSite::norm;
    case CodePart::fft: return AllocationSite::fft;
    case CodePart::kv_cache: return AllocationSite::kv_cache;
    case CodePart::linear: {
      const auto modeling = [](const Frame& f) { return f.file.find("/modeling_") != std::string::npos; };
      const bool head = std::count_if(frames.begin(), frames.end(), modeling) == 1;
      return head ? AllocationSite::logits : AllocationSite::projection;
    }
    default: return AllocationSite::unknown;
  }
}

VLMEST_INLINE Cause cause_of(const RecordedSnapshot& s, const LiveGroup& g, bool recorded) {
  switch (g.role) {
    case MemoryRole::weight: return Cause::weights;
    case MemoryRole::gradient: return Cause::gradients;
    case MemoryRole::optimizer_state: return Cause::optimizer_state;
    case MemoryRole::kv_cache: return Cause::kv_cache;
    default: break;
  }
  if (g.stack == 0 && !recorded) return Cause::unknown;
  const auto frames = frames_of(s.stacks, g.stack);
  AllocationSite site = allocation_site_of(frames);
  if (site == AllocationSite::unknown) site = site_of(g.site, frames);
  const RunPhase phase = run_phase(frames);
  const Cause c = stack_cause(site, g.site.vision ? RunPhase::vision_forward : phase);
  // Temporaries of a backward are what activations' gradients are.
  const bool kept = c == Cause::gradients || c == Cause::weights || c == Cause::optimizer_state || c == Cause::unknown;
  return kept ? Cause::activations : c;
}

VLMEST_INLINE std::optional<SteadyGrowth> kept_outputs(const RecordedSnapshot& s, const SnapshotAnalysis& a) {
  for (const LiveGroup& g : a.groups) {
    if (g.count < 4 || g.site.part != CodePart::linear) continue;
    if (site_of(g.site, frames_of(s.stacks, g.stack)) != AllocationSite::logits) continue;
    const auto count = static_cast<std::int64_t>(g.count);
    return SteadyGrowth{static_cast<double>(g.bytes.value()) / static_cast<double>(count), count, a.live - g.bytes,
                        a.live, place(s.stacks, g.site)};
  }
  return std::nullopt;
}

VLMEST_INLINE std::optional<SteadyGrowth> kept_graphs(const RecordedSnapshot& s, const SnapshotAnalysis& a) {
  const auto alive = [&](const Allocation& x) { return !x.older() && x.active_at(a.moment); };
  std::vector<std::size_t> order;  // of what is alive, in the order in which it was made
  for (std::size_t i = 0; i < a.timeline.allocations.size(); ++i)
    if (alive(a.timeline.allocations[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t k) {
    return a.timeline.allocations[i].born < a.timeline.allocations[k].born;
  });
  std::optional<SteadyGrowth> best;
  for (const LiveGroup& loss : a.groups) {
    if (loss.site.part != CodePart::loss || loss.count < 4) continue;
    struct Kept {
      std::int64_t passes = 0, last = -1;
      Bytes bytes;
    };
    std::unordered_map<StackTable::Stack, Kept> kept;
    std::int64_t pass = 0;
    bool between = false;
    for (const std::size_t i : order) {
      const Allocation& x = a.timeline.allocations[i];
      if (x.stack == loss.stack) {
        pass += between ? 1 : 0;
        between = false;
        continue;
      }
      between = true;
      Kept& k = kept[x.stack];
      k.passes += k.last != pass ? 1 : 0;
      k.last = pass;
      k.bytes += x.size;
    }
    Bytes grown = loss.bytes, most{};
    StackTable::Stack largest = 0;
    for (const auto& [stack, k] : kept) {
      if (pass < 4 || k.passes * 10 < pass * 9) continue;
      grown += k.bytes;
      if (k.bytes > most) most = k.bytes, largest = stack;
    }
    if (most == Bytes{} || (best && grown <= best->last - best->first)) continue;
    best =
        SteadyGrowth{static_cast<double>(grown.value()) / static_cast<double>(pass), pass, a.live - grown, a.live, {}};
    for (const LiveGroup& g : a.groups)
      if (g.stack == largest) best->where = place(s.stacks, g.site);
  }
  return best;
}

VLMEST_INLINE std::optional<SteadyGrowth> growth_of(const RecordedSnapshot& s, const SnapshotAnalysis& a) {
  const StepGrowth& g = a.growth;
  if (g.bytes.size() < 3 || g.rising < 0.9 || g.bytes_per_step < 1 << 20) {
    auto kept = kept_outputs(s, a);
    return kept ? kept : kept_graphs(s, a);
  }
  SteadyGrowth r{
      g.bytes_per_step, static_cast<std::int64_t>(g.bytes.size()), Bytes(g.bytes.front()), Bytes(g.bytes.back()), {}};
  if (!g.stacks.empty())
    for (const LiveGroup& live : a.groups)
      if (live.stack == g.stacks.front().stack) r.where = place(s.stacks, live.site);
  return r;
}

}  // namespace snapshot_failure

VLMEST_INLINE Failure failure_of(const RecordedSnapshot& s, const SnapshotAnalysis& a) {
  using namespace snapshot_failure;
  Failure f;
  f.allocated = PrintedSize::exactly(a.live);
  f.unallocated = PrintedSize::exactly(a.reserved.reserved - a.reserved.active);
  f.largest_free = a.reserved.largest_usable;
  std::array<Bytes, causes.size()> sums{};
  const bool recorded = a.timeline.active.size() > 2 || s.stacks.stack_count() > 1;
  for (const LiveGroup& g : a.groups) sums[static_cast<std::size_t>(cause_of(s, g, recorded))] += g.bytes;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > Bytes{}) f.live.push_back({static_cast<Cause>(i), sums[i]});
  sort_stably(f.live, [](const auto& x, const auto& y) { return x.bytes > y.bytes; });
  f.growth = growth_of(s, a);
  for (const MemoryPart& p : f.live)
    if (p.cause == Cause::gradients || p.cause == Cause::optimizer_state)
      f.told = ToldMode{Mode::training, std::string(name(p.cause)) + " that were alive"};
  if (!a.oom) return f;
  f.requested = PrintedSize::exactly(a.oom->size);
  f.tensor = PrintedSize{a.oom->size, a.oom->size - Bytes(511), a.oom->size};
  f.free = PrintedSize::exactly(a.oom->device_free);
  f.frames = frames_of(s.stacks, a.oom->stack);
  f.site = allocation_site_of(f.frames);
  if (f.site == AllocationSite::unknown) f.site = site_of(a.oom_site, f.frames);
  f.phase = run_phase(f.frames);
  if (f.phase == RunPhase::unknown) f.phase = phase_of(a.oom_site.stage);
  if (f.phase == RunPhase::forward && a.oom_site.vision) f.phase = RunPhase::vision_forward;
  if (auto told = told_mode(f.frames, f.phase)) f.told = std::move(told);
  return f;
}

VLMEST_INLINE Failure merged(Failure snapshot, const Failure& message) {
  const auto fill = [](auto& to, const auto& from) {
    if (!to) to = from;
  };
  fill(snapshot.total, message.total);
  fill(snapshot.allowed, message.allowed);
  fill(snapshot.non_torch, message.non_torch);
  fill(snapshot.others, message.others);
  fill(snapshot.requested, message.requested);
  fill(snapshot.free, message.free);
  fill(snapshot.growth, message.growth);
  if (!snapshot.tensor) {
    snapshot.tensor = message.tensor;
    snapshot.telling = message.telling;
  }
  if (snapshot.site == AllocationSite::unknown) snapshot.site = message.site;
  if (snapshot.phase == RunPhase::unknown) snapshot.phase = message.phase;
  if (snapshot.frames.empty()) snapshot.frames = message.frames;
  fill(snapshot.told, message.told);
  return snapshot;
}

}  // namespace vlmest::diagnose
