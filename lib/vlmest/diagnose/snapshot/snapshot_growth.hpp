// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vlmest/diagnose/leak.hpp>
#include <vlmest/diagnose/snapshot/recorded_snapshot.hpp>
#include <vlmest/diagnose/snapshot/snapshot_roles.hpp>
#include <vlmest/diagnose/snapshot/snapshot_timeline.hpp>

namespace vlmest::diagnose {

/// A stack whose allocations pile up.
struct GrowingStack {
  StackTable::Stack stack = 0;
  double bytes_per_step = 0;
  double tensors_per_step = 0;
  Bytes at_first, at_last;  ///< alive at the first and the last of the steps that were compared
};

/// Memory at the same point of every step.
struct StepGrowth {
  enum class Cut : std::uint8_t { none, annotations, optimizer, backward, input };
  Cut cut = Cut::none;               ///< by what the steps were told apart
  std::vector<std::size_t> steps;    ///< events before which the live memory is compared; the first step is left out
  std::vector<std::int64_t> bytes;   ///< what is alive there
  double bytes_per_step = 0;         ///< the median of the slopes between any two of them (Theil 1950, Sen 1968)
  double rising = 0;                 ///< of all pairs, the part in which the later is larger
  std::vector<GrowingStack> stacks;  ///< those that rise, the fastest first; at most 8
};

namespace growing {

/// The slope of y over 0, 1, 2, ... as trend() gives it, and the part of all pairs in which the later is larger (of
/// more than 400 points, of every n-th).
inline double median_slope(std::span<const std::int64_t> y, double* rising = nullptr) {
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

/// A name without the digits at its end: ProfilerStep#12 and ProfilerStep#13 are steps of one kind.
inline std::string_view kind(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

/// Ends of the ranges that cover the most time of all kinds with three ranges or more: the outermost that repeat.
inline std::vector<std::size_t> by_annotations(const RecordedSnapshot& s, std::int64_t device,
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

/// The events at which a stage is over.
template <class InStage>
std::vector<std::size_t> after(std::span<const TraceEntry> trace, const Stages& stages, InStage in) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < trace.size(); ++i)
    if (in(stages.at[i - 1]) && !in(stages.at[i])) cuts.push_back(i);
  return cuts;
}

}  // namespace growing

/// Whether memory grows from step to step, and what grows. Steps are told apart by ranges of record_function, else by
/// the end of the optimizer's stage, of the backward, or by the arrival of inputs, whichever comes four times. Nothing
/// is said of fewer; the first step is left out, since it makes states and caches.
inline StepGrowth growth(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace,
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
  std::stable_sort(g.stacks.begin(), g.stacks.end(),
                   [](const auto& a, const auto& b) { return a.bytes_per_step > b.bytes_per_step; });
  return g;
}

}  // namespace vlmest::diagnose
