// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/allocator/process.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/live_tensor.hpp>

namespace vlmest {

/// What is allocated at a peak, by what it is for. The parts add up to the peak, to the byte.
struct PeakParts {
  Bytes weights{};  ///< parameters and buffers
  Bytes kv_cache{};
  Bytes activations{};  ///< what the ops that run hold, and the scratch of the libraries behind them
  Bytes saved{};        ///< activations that the forward keeps for the backward
  Bytes gradients{};
  Bytes optimizer{};  ///< states
  Bytes other{};      ///< inputs, and the workspaces that libraries keep

  constexpr Bytes sum() const { return weights + kv_cache + activations + saved + gradients + optimizer + other; }
};

/// The parts of a phase's peak. `forward`: the last forward of a training step; inference has none.
inline PeakParts peak_parts(const Timeline& timeline, const allocator::Process& process,
                            const allocator::PhaseMemory& m, const Phase* forward = nullptr) {
  PeakParts p{.activations = m.scratch};
  const auto storages = timeline.storages();
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const Storage& s = storages[i];
    if (!alive(s, m.node)) continue;
    const Bytes bytes = process.occupied(i);
    switch (s.role) {
      case Role::weight:
      case Role::buffer: p.weights += bytes; break;
      case Role::kv_cache: p.kv_cache += bytes; break;
      case Role::gradient: p.gradients += bytes; break;
      case Role::optimizer_state: p.optimizer += bytes; break;
      case Role::activation: (forward && left_by(s, *forward) ? p.saved : p.activations) += bytes; break;
      case Role::input:
      case Role::workspace: break;
    }
  }
  p.other = m.peak - p.sum();
  return p;
}

}  // namespace vlmest
