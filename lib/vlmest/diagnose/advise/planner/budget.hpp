// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/memory_curve.hpp>

namespace vlmest::diagnose {

/// A memory limit divided over what a run of inference holds. What stays comes first; of what the components need while
/// they run only the largest is taken off, for they run one after the other; the rest can hold keys and values.
struct MemoryBudget {
  Bytes limit{};
  Bytes weights{};             ///< with buffers
  Bytes inputs{};              ///< token ids, masks, pixels
  Bytes vision{};              ///< most that the vision tower holds besides while it runs, its results included
  Bytes projector{};           ///< the same while the projector does
  Bytes language{};            ///< while the language model reads the prompt; logits and joining of the parts included
  Bytes decode{};              ///< while it writes a token
  Bytes kv{};                  ///< keys and values of the whole batch, when all new tokens are written
  Bytes kv_token{};            ///< of one token, on average over the prompt
  Bytes left{};                ///< for keys and values; negative: what is missing for the others
  std::int64_t kv_tokens = 0;  ///< that fit there, over all sequences

  /// The largest of what components need while they run.
  Bytes working() const { return std::max({vision, projector, language, decode}); }
};

/// The budget of `s` within the device's usable memory. The estimator's allocator and details are changed. Throws Error
/// as estimates do.
MemoryBudget budget(const Settings& s, const Device& device, Estimator& estimator);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/planner/impl/budget.hpp>
#endif
