// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// The tensor that was probably asked for, where the estimate of a run names none: by its size alone, or by the line
/// that failed.
namespace vlmest::diagnose {

/// What the size alone can be in an inference whose stack is not known, as soon as it is larger than what fused
/// attention asks for: logits of all positions, where the run computes them, or scores. Activations of such a size have
/// lengths that no model takes. `own_kernels`: an engine runs the model, whose attention makes no scores.
std::optional<Verdict> judge_by_size(const Failure& f, const Settings& settings, const Device& device,
                                     bool own_kernels);

/// Names the tensor of a verdict that has none: the one that the failed line makes, whose shape and type it gives, with
/// the module of the weight of that shape, where there is one alone; of weights, states and gradients the only weight
/// of the model that has the size in 16 or 32 bits; of logits the rows of the model's vocabulary; of attention scores
/// the most plausible matrix of the model. Where none of these is, what the failed line calls it.
void name_tensor(Verdict& v, const Failure& f, const Settings* settings, const Device& device);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/likely_tensor.hpp>
#endif
