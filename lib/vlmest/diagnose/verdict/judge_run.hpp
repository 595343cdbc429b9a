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

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_run.hpp>
#endif
