// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/tensor/described_tensor.hpp>

namespace vlmest::diagnose {

/// When in a run an allocation happens. Until the optimizer has stepped once its states do not exist, so a first step
/// asks for the same tensors as later ones, over less memory.
enum class Moment : std::uint8_t { load, inference, first_step, later_step };

inline constexpr std::array<std::string_view, 4> moments{"loading", "inference", "the first step", "a later step"};
constexpr std::string_view name(Moment m) { return moments[static_cast<std::size_t>(m)]; }

/// A tensor that may have been asked for. Tensors that are the same but for their layer are one hypothesis; the layer
/// named is the one whose turn comes closest to the memory that was allocated.
struct Hypothesis {
  DescribedTensor tensor;
  Cause cause = Cause::unknown;
  std::string phase;
  Moment moment = Moment::load;
  Bytes before{};         ///< allocated, by the estimate, when it is asked for
  std::size_t alike = 1;  ///< allocations of this kind, over all layers
  double confidence = 0;  ///< of all hypotheses together 1
  double agreement = 0;   ///< 1: nothing speaks against it
  std::string assuming;   ///< what had to be changed of the settings asked for; empty: nothing
};

}  // namespace vlmest::diagnose
