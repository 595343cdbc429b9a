// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::diagnose {

/// What flags say of the lengths of a run; `seq` where it is given, `images` always.
LengthBounds length_bounds(const Plan& p);

/// Reads a failure with the settings given and, where they do not explain it, with those that differ by one flag. Both
/// phases are read where neither `mode` nor the evidence decides.
Verdict judge(const Failure& f, const Settings& settings, const Device& device, std::optional<Mode> mode,
              Estimator& estimator);

/// What the size alone can be in an inference whose stack is not known, as soon as it is larger than what fused
/// attention asks for: logits of all positions, where the run computes them, or scores. Activations of such a size have
/// lengths that no model takes. `own_kernels`: an engine runs the model, whose attention makes no scores.
std::optional<Verdict> judge_by_size(const Failure& f, const Settings& settings, const Device& device,
                                     bool own_kernels);

/// Names the tensor of a verdict that has none: the one that the failed line makes, whose shape and type it gives; of
/// attention scores the most plausible matrix of the model.
void name_tensor(Verdict& v, const Failure& f, const Settings* settings, const Device& device);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_run.hpp>
#endif
