// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/parallel/several_gpus.hpp>

namespace vlmest::parallel {

/// The part of estimate_several that concerns GPUs that divide sequences (context parallelism): ranks meet other keys,
/// so that the step is made for the first of them, for the last one, and for one between. `estimator` has made `e` of
/// the first one's plan (sequence_part); at the end both are of the rank that needs most.
ParallelEstimate estimate_sequence_parts(Estimator& estimator, Estimate& e, const Vlm& vlm, const Plan& plan,
                                         const Device& device, const Layout& layout, const Network& network);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/sequence_parts.hpp>
#endif
