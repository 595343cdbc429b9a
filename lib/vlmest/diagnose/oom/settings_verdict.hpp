// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/verdict.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::diagnose {

/// The verdict on a training of which only settings are known: what takes most of each GPU, where they need more than
/// the device has. `device_known`: the run's device is; otherwise nothing is said to be too much.
Verdict judge_settings(const Settings& s, const Device& device, bool device_known, Estimator& estimator);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/oom/impl/settings_verdict.hpp>
#endif
