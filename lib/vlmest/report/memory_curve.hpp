// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/allocator/config.hpp>
#include <vlmest/analysis/timeline.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest {

inline constexpr std::size_t roles = static_cast<std::size_t>(Role::optimizer_state) + 1;

/// Memory while one node runs.
struct MemorySample {
  NodeId node = 0;
  Seconds start{}, length{};           ///< from the first node on, kernel times one after the other
  Bytes allocated{}, reserved{};       ///< the node's scratch included
  std::array<Bytes, roles> by_role{};  ///< by Role; they add up to `allocated`
};

/// A phase's samples.
struct CurvePhase {
  PhaseKind kind = PhaseKind::prefill;
  std::size_t first = 0, last = 0;  ///< one past the end
  Bytes peak{};
};

/// One storage of at least one byte, for as long as it is held.
struct LifeSpan {
  LiveTensor tensor;
  std::size_t first = 0, last = 0;  ///< samples; one past the end
};

/// Memory over the phases of a graph, as the estimate replays them.
struct MemoryCurve {
  std::vector<MemorySample> samples;
  std::vector<CurvePhase> phases;
  std::vector<LifeSpan> lives;
  Seconds end{};
};

/// Memory over the phases that the graph's script measures: a prefill and a decode step, or a training step in the
/// steady state.
MemoryCurve memory_curve(const Graph& g, const Timeline& timeline, const Device& device,
                         const allocator::AllocatorConfig& settings = {});

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/memory_curve.hpp>
#endif
