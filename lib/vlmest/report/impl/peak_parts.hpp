// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/peak_parts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE PeakParts peak_parts(const Timeline& timeline, std::span<const std::size_t> alive,
                                   const allocator::Process& process, const allocator::PhaseMemory& m,
                                   const Phase* forward) {
  PeakParts p{.activations = m.scratch};
  for (const std::size_t i : alive) {
    const Storage& s = timeline.storages()[i];
    const Bytes bytes = process.occupied(i);
    switch (s.role) {
      case Role::weight: p.weights += bytes; break;
      case Role::buffer:
        if (s.beside == BesideGraph::nothing) p.weights += bytes;
        break;
      case Role::kv_cache: p.kv_cache += bytes; break;
      case Role::gradient: p.gradients += bytes; break;
      case Role::optimizer_state: p.optimizer += bytes; break;
      case Role::activation: {
        const bool saved = s.beside == BesideGraph::in_flight || (forward != nullptr && left_by(s, *forward));
        (saved ? p.saved : p.activations) += bytes;
        break;
      }
      case Role::input:
      case Role::workspace: break;
    }
  }
  p.other = m.peak - p.sum();
  return p;
}

}  // namespace vlmest
