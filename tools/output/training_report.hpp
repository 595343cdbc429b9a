// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/report/memory_curve.hpp>

#include "estimate_report.hpp"
#include "table.hpp"

namespace vlmest::tool {

/// "training: adamw-fused, full checkpointing, vision frozen; 6.76 B of 7.06 B parameters train"
std::string training_inputs(const Reported& r);

/// Forward, backward, optimizer step, and all of them.
Table training_phases(const Reported& r);

/// Weights, gradients, optimizer states, saved activations.
Table training_states(const Reported& r);

/// What each role holds at each phase's peak, and the op that runs there.
Table training_peaks(const Reported& r, const MemoryCurve& curve);

/// How the allocator's segments are used at the peak.
std::string reserved_text(const TrainingEstimate& e);

/// Allocated bytes over the step as a line of text, with its scale.
std::string curve_text(const MemoryCurve& curve, bool unicode);

}  // namespace vlmest::tool
