// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/report/memory_curve.hpp>

namespace vlmest::tool {

/// Memory over the phases of one graph.
struct TracedCurve {
  const char* name = "";  ///< "inference", "training"
  const Graph& graph;
  MemoryCurve curve;
};

/// Trace events in JSON that ui.perfetto.dev and chrome://tracing read (Google, "Trace Event Format"). A process for
/// each curve; counters of allocated and reserved bytes and of every role at each change; slices of phases, of ops, and
/// of tensors of at least `least` bytes for as long as they live. The counters hold all tensors. Times are microseconds
/// of estimated kernel time from the first op on.
std::string chrome_trace(const std::vector<TracedCurve>& curves, Bytes least);

/// One row for each op: when, what, and how much of each role is allocated while it runs.
std::string timeline_csv(const std::vector<TracedCurve>& curves);

/// The most that is allocated, in `width` columns for the time from begin to end, below them the phases. UTF-8 blocks
/// or plain ASCII.
std::string sparkline(const MemoryCurve& curve, std::size_t width, bool unicode);

}  // namespace vlmest::tool
