// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <vlmest/allocator/process.hpp>
#include <vlmest/analysis/timeline.hpp>

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

/// The parts of a phase's peak, at which these storages are alive (alive_at_peak()). `forward`: the last forward of a
/// training step; inference has none.
PeakParts peak_parts(const Timeline& timeline, std::span<const std::size_t> alive, const allocator::Process& process,
                     const allocator::PhaseMemory& m, const Phase* forward = nullptr);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/peak_parts.hpp>
#endif
