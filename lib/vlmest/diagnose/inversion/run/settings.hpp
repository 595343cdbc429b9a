// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <vlmest/allocator/config.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/parallel/strategy.hpp>
#include <vlmest/plan/plan.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest::diagnose {

using parallel::Offload;
using parallel::Sharding;

/// Everything that decides what a run takes, but for the device: the model with its image processor's limits (its token
/// rule), the plan, the allocator's settings, and where states live. Actions and planners change copies of it.
struct Settings {
  Vlm vlm;
  Plan plan;
  allocator::AllocatorConfig allocator;  ///< capacity and total memory are the device's
  parallel::Strategy placement;
  /// Images of several sizes come in batches of one size each, instead of mixed: what is evaluated is the mean time of
  /// these batches, each as often as its size, and the largest one's memory.
  bool grouped_by_size = false;
};

/// What a run with some settings takes.
struct Outcome {
  Bytes peak{};  ///< torch.cuda.max_memory_allocated(), on each GPU
  /// The same of each phase: prefill and decode; forward, backward and step of the last micro-batch.
  std::array<Bytes, 3> peaks{};
  Bytes reserved{};          ///< torch.cuda.max_memory_reserved()
  Seconds time{};            ///< of one step of all micro-batches; of one prefill and all its decode steps
  std::int64_t samples = 1;  ///< sequences that it handles, on each GPU
  bool fits = false;
  Seconds per_sample() const { return time * (1.0 / static_cast<double>(samples)); }
};

/// Times within a percent of each other are one: no estimate is that sure.
inline constexpr double same_time = 1.01;

}  // namespace vlmest::diagnose
