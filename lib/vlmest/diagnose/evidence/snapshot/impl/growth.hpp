// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/snapshot/growth.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace growing {

VLMEST_INLINE double median_slope(std::span<const std::int64_t> y, double* rising) {
  if (y.size() < 2) return 0;
  if (rising != nullptr) {
    const auto stride = y.size() / 400 + 1;
    std::size_t up = 0, pairs = 0;
    for (std::size_t i = 0; i < y.size(); i += stride)
      for (std::size_t j = i + stride; j < y.size(); j += stride, ++pairs) up += y[j] > y[i] ? 1 : 0;
    *rising = pairs > 0 ? static_cast<double>(up) / static_cast<double>(pairs) : 0;
  }
  Points points;
  for (std::size_t i = 0; i < y.size(); ++i) points.emplace_back(static_cast<double>(i), static_cast<double>(y[i]));
  return trend(points).slope;
}

VLMEST_INLINE std::vector<std::size_t> by_annotations(const RecordedSnapshot& s, std::int64_t device,
                                                      std::span<const TraceEntry> trace) {
  struct Kind {
    double covered = 0;
    std::int64_t open = -1;
    std::vector<std::int64_t> ends;
  };
  std::unordered_map<std::string_view, Kind> kinds;
  for (const auto& a : s.annotations) {
    if (a.device != device && a.device >= 0) continue;
    auto& k = kinds[kind(s.stacks.strings[a.name])];
    if (a.starts) {
      k.open = a.time_us;
    } else if (k.open >= 0 && a.time_us >= k.open && a.time_us < std::int64_t{1} << 60) {
      k.covered += static_cast<double>(a.time_us - k.open);
      k.open = -1;
      k.ends.push_back(a.time_us);
    }
  }
  const Kind* best = nullptr;
  for (const auto& [_, k] : kinds)
    if (k.ends.size() >= 3 &&
        (best == nullptr || k.covered > best->covered || (k.covered == best->covered && k.ends < best->ends)))
      best = &k;
  std::vector<std::size_t> cuts;
  if (best == nullptr) return cuts;
  auto ends = best->ends;
  std::sort(ends.begin(), ends.end());
  std::size_t i = 0;
  for (const auto end : ends) {
    while (i < trace.size() && trace[i].time_us <= end) ++i;
    if (cuts.empty() || cuts.back() != i) cuts.push_back(i);
  }
  return cuts;
}

}  // namespace growing

VLMEST_INLINE StepGrowth growth(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace,
                                const SnapshotTimeline& t, const Stages& stages) {
  StepGrowth g;
  std::vector<std::size_t> cuts;
  const auto try_cut = [&](StepGrowth::Cut by, std::vector<std::size_t> found) {
    if (g.cut != StepGrowth::Cut::none || found.size() < 4) return;
    g.cut = by;
    cuts = std::move(found);
  };
  try_cut(StepGrowth::Cut::annotations, growing::by_annotations(s, device, trace));
  // A fused optimizer allocates nothing once its states exist, and inference has nothing but its inputs.
  try_cut(StepGrowth::Cut::optimizer, growing::after(trace, stages, [](Stage x) { return x == Stage::optimizer; }));
  try_cut(StepGrowth::Cut::backward, growing::after(trace, stages, [](Stage x) { return x == Stage::backward; }));
  try_cut(StepGrowth::Cut::input, growing::after(trace, stages, [](Stage x) { return x != Stage::input; }));
  if (g.cut == StepGrowth::Cut::none) return g;
  cuts.erase(cuts.begin());
  g.steps = cuts;
  for (const auto c : cuts) g.bytes.push_back(t.active[c]);
  g.bytes_per_step = growing::median_slope(g.bytes, &g.rising);

  // Which stacks have more at the last step than at the first: of those the largest are followed step by step.
  struct Net {
    std::int64_t first = 0, last = 0;
  };
  std::unordered_map<StackTable::Stack, Net> nets;
  for (const auto& a : t.allocations) {
    if (a.active_at(cuts.front())) nets[a.stack].first += a.size.value();
    if (a.active_at(cuts.back())) nets[a.stack].last += a.size.value();
  }
  std::vector<std::pair<std::int64_t, StackTable::Stack>> risen;
  for (const auto& [stack, n] : nets)
    if (n.last > n.first) risen.emplace_back(n.first - n.last, stack);
  std::sort(risen.begin(), risen.end());
  risen.resize(std::min<std::size_t>(risen.size(), 8));
  for (const auto& [_, stack] : risen) {
    std::vector<std::int64_t> bytes(cuts.size() + 1), tensors(cuts.size() + 1);
    for (const auto& a : t.allocations) {
      if (a.stack != stack) continue;
      const auto from = a.older() ? cuts.begin() : std::upper_bound(cuts.begin(), cuts.end(), a.born);
      const auto to = std::upper_bound(from, cuts.end(), a.freed);
      const auto i = static_cast<std::size_t>(from - cuts.begin()), k = static_cast<std::size_t>(to - cuts.begin());
      bytes[i] += a.size.value();
      bytes[k] -= a.size.value();
      ++tensors[i];
      --tensors[k];
    }
    for (std::size_t i = 1; i < bytes.size(); ++i) {
      bytes[i] += bytes[i - 1];
      tensors[i] += tensors[i - 1];
    }
    const auto per_step = growing::median_slope(std::span(bytes).first(cuts.size()));
    if (per_step <= 0) continue;
    g.stacks.push_back({stack, per_step, growing::median_slope(std::span(tensors).first(cuts.size())),
                        Bytes(bytes.front()), Bytes(bytes[cuts.size() - 1])});
  }
  sort_stably(g.stacks, [](const auto& a, const auto& b) { return a.bytes_per_step > b.bytes_per_step; });
  return g;
}

}  // namespace vlmest::diagnose
