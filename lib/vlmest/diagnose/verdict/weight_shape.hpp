// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/text/printed_size.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// Weights by their size: what is loaded, its gradient and an optimizer's state of it all have a parameter's shape.
namespace vlmest::diagnose {

namespace weight_shape {

/// Whether a cause is of what has a parameter's shape.
constexpr bool of_parameters(Cause c) {
  return c == Cause::weights || c == Cause::optimizer_state || c == Cause::gradients;
}

/// The shapes of a graph's weights that have the size in 16 or 32 bits, each once, with a module of theirs.
std::vector<DescribedTensor> of_size(const Graph& g, const PrintedSize& size);

/// What a cause makes in the shape of a weight.
DescribedTensor in_shape_of(DescribedTensor weight, Cause c);

}  // namespace weight_shape

/// Names the tensor of weights, states and gradients of a run whose model is not known: the only shape that has the
/// size among the weights of all `models` in 16 bits, or else in 32, of those with about as many parameters as somebody
/// tells, where two models or more have it: families share their decoder's layers. Where nobody tells them (0) it is
/// only spoken of.
void name_weight(Verdict& v, const Failure& f, const std::vector<const Vlm*>& models, const Device& device,
                 double parameters_told);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/weight_shape.hpp>
#endif
