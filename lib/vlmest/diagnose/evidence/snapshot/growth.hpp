// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/leak.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>
#include <vlmest/diagnose/evidence/snapshot/roles.hpp>
#include <vlmest/diagnose/evidence/snapshot/timeline.hpp>

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
double median_slope(std::span<const std::int64_t> y, double* rising = nullptr);

/// A name without the digits at its end: ProfilerStep#12 and ProfilerStep#13 are steps of one kind.
inline std::string_view kind(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

/// Ends of the ranges that cover the most time of all kinds with three ranges or more: the outermost that repeat.
std::vector<std::size_t> by_annotations(const RecordedSnapshot& s, std::int64_t device,
                                        std::span<const TraceEntry> trace);

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
StepGrowth growth(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace,
                  const SnapshotTimeline& t, const Stages& stages);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/growth.hpp>
#endif
