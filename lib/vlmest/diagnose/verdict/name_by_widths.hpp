// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/public_widths.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

namespace vlmest::diagnose {

/// Names the tensor of weights, states and gradients of a model that is not known where one shape alone of the public
/// widths has the size, and speaks of them where few have.
void name_by_widths(Verdict& v, const Failure& f, const ToldModel& told);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/name_by_widths.hpp>
#endif
