// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/parallel/several_gpus.hpp>

namespace vlmest::parallel {

/// The part of estimate_several that concerns layers divided over all GPUs (divides_layers_alone): the estimate of one
/// rank is already that of every rank; the collectives' time becomes that of the network.
ParallelEstimate estimate_divided(const Estimator& estimator, Estimate& e, const Plan& plan, const Device& device,
                                  const Layout& layout, const Network& network, Phases phases);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/divided_layers.hpp>
#endif
