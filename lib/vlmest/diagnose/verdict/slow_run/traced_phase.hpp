// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/verdict/slow_run/op_distance.hpp>

namespace vlmest::diagnose {

/// What a run was doing.
enum class TracedPhase : std::uint8_t { unknown, prefill, decode, prefill_and_decode, training };

constexpr std::string_view name(TracedPhase p) {
  constexpr std::array<std::string_view, 5> names{"unknown", "prefill", "decode", "prefill_and_decode", "training"};
  return names[static_cast<std::size_t>(p)];
}

struct PhaseTimes {
  TracedPhase phase = TracedPhase::unknown;
  Ns prefill = 0, decode = 0;  ///< kernel time around attention of many queries, and of one
  std::int64_t decode_attentions = 0, prefill_attentions = 0;
  std::vector<bool> decoding;  ///< for each kernel of the trace: it ran in a decode step
};

/// Tells decode from prefill by attention: one query a sequence, from the operator's sizes, or from the name of a
/// kernel that is made for it; where none shows, as in attention written out, by products, if most of them are of a
/// single row: one alone is a classifier's, or the last of a prefill. Kernels between two attentions belong to the
/// former one's phase. Backward kernels and optimizers are training, whatever else there is. A run without recorded
/// sizes is called prefill only where it had attention kernels that are not made for one query and none that are.
PhaseTimes phase_times(const ProfileTrace& t, const GpuTime& g, const std::vector<KernelTraits>& traits,
                       const OpDistances& ops);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/slow_run/impl/traced_phase.hpp>
#endif
