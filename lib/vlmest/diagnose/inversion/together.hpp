// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/together_solution.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest::diagnose {

/// The settings that explain the request: batches that people run, lengths up to the model's positions, round ones
/// first, and pictures as the model's processor lays them out. `only`: tensors of this cause alone, unknown: of any.
Together solve_together(const Vlm& vlm, const Plan& plan, const ToldInputs& told, const Device& device, bool training,
                        const Failure& f, Cause only, std::size_t most = 4);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/together.hpp>
#endif
