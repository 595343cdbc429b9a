// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/text/printed_size.hpp>
#include <vlmest/unit/units.hpp>

/// Whether settings explain the memory that a failed allocation found in use.
namespace vlmest::diagnose {

/// How far the memory that the estimate has allocated when a tensor of that size is asked for is from what was. The
/// bounds are those at which verdicts become less often right (oom_confidence.hpp has the counts).
enum class Nearness : std::uint8_t {
  within,  ///< one percent: the estimate's own error, see tests/data/oom_runs
  near,    ///< up to twice, or half
  far,     ///< further
  unknown  ///< the evidence does not tell how much was allocated
};

/// Larger over smaller, less one; 0 within the interval that prints so.
std::optional<double> memory_distance(const std::optional<PrintedSize>& allocated, Bytes before);
inline Nearness nearness(const std::optional<PrintedSize>& allocated, Bytes before) {
  const auto d = memory_distance(allocated, before);
  return !d ? Nearness::unknown : *d <= 0.01 ? Nearness::within : *d <= 1 ? Nearness::near : Nearness::far;
}

/// A single change of the settings with which a tensor of that size is asked for over the memory that was allocated.
struct ExplainingChange {
  std::string flag;   ///< "--checkpointing full"
  Bytes allocated{};  ///< with it, when the tensor is asked for
};

/// Whether the settings given explain the failure.
struct Explanation {
  bool holds = false;
  std::optional<Bytes> estimated;         ///< allocated by the settings given, when a tensor of that size is asked for
  std::vector<ExplainingChange> changes;  ///< where it does not hold; the verdict and the actions are of the first
};

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/explained.hpp>
#endif
