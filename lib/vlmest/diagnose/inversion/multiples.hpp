// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/multiple.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest::diagnose {

/// What the tower makes of one largest picture, so many times that it has the size; the likeliest first.
std::vector<Multiple> multiples(const Vlm& vlm, const Plan& plan, const Device& device, const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/multiples.hpp>
#endif
