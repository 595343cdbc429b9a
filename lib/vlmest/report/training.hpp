// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/allocator/replay.hpp>
#include <vlmest/analysis/params.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/peak_parts.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/report/run_time.hpp>

namespace vlmest {

/// A training step in the steady state: the second one, when optimizer states exist.
struct TrainingEstimate {
  Elements trainable{};                            ///< parameters that require a gradient
  Bytes weights{};                                 ///< parameters and buffers as the allocator holds them
  Bytes gradients{};                               ///< of all parameters that receive one
  Bytes optimizer{};                               ///< states
  Bytes saved_activations{};                       ///< activations alive when the forward has ended
  std::int64_t checkpointed_tensors = 0;           ///< that checkpointed layers save, through hooks, in one forward
  Bytes fft{};                                     ///< most that a spectral block holds at one time
  Bytes forward_end{};                             ///< allocated when the forward has ended
  allocator::PhaseMemory forward, backward, step;  ///< of the last micro-batch; `after` is what is left at their end
  Work forward_work, backward_work, step_work;     ///< of one pass
  std::int64_t micro_batches = 1;                  ///< how often forward and backward run
  Work work;                                       ///< of the whole step, all micro-batches
  Seconds gpu{}, wall{}, graph{};
  WallRange wall_range;   ///< between which times `wall` lies, as hosts and kernels differ; none without details
  Seconds passes_host{};  ///< until the host has launched all forwards and backwards
  Seconds step_wall{};    ///< of the optimizer alone
  Bound bound = Bound::compute;
  Bytes peak{};
  Bytes reserved{};
  /// Reserved in a loop that never empties the cache; at most what the device allows where the step fits. 0 without
  /// details.
  Bytes reserved_in_loop{};
  /// The same of its first two steps, after which a measurement may stop; whatever the device allows. 0 without
  /// details.
  Bytes reserved_in_two_steps{};
  PhaseKind peak_phase = PhaseKind::forward;
  std::vector<LiveTensor> tensors;  ///< at the highest of the three peaks, by bytes; they add up to `peak`
  PeakParts parts;                  ///< of that peak; empty without details
  bool fits = false;

  /// The phase with the highest peak.
  const allocator::PhaseMemory& highest() const { return vlmest::highest(forward, backward, step); }
};

/// Parameters of a built graph that require a gradient.
Elements trainable_parameters(const Graph& g, const Plan& plan);

/// The same of a plan for a model that is not built for training, with adapters where the plan has them.
Elements trainable_parameters(Builder& b, const Vlm& vlm, const Plan& plan);

/// Parameters of the model itself, by component.
Parameters parameters_without_adapters(const Graph& g);

namespace training_estimate {

/// As for inference: where what is reserved exceeds the device's memory, the step is replayed within it.
bool fits(TrainingEstimate& r, const Graph& g, const Timeline& timeline, const Device& device,
          const allocator::AllocatorConfig& settings);

/// Totals that the layers' rows would add up to.
void add_totals(TrainingEstimate& e, const Graph& g, const Timeline& timeline, const Phase& forward,
                const Phase& backward, std::span<const Work> of_ops);

/// Parameters that an optimizer goes through: those with a gradient.
std::int64_t trained_tensors(const Timeline& t);

/// All that the allocator does not decide: work, time, and the bytes of states and saved activations. `rows` receives
/// the layers; without details there are none.
void add_work(TrainingEstimate& e, const Graph& g, const Timeline& timeline, std::span<const Work> of_ops,
              const Plan& plan, const Device& device, bool details, std::vector<LayerRow>& rows);

/// What a replay on the allocator tells; without details not the tensors of the peak, nor what a loop reserves. A graph
/// may hold more than this GPU keeps: the bytes are those of `timeline`.
void add_memory(TrainingEstimate& e, const Graph& g, const Timeline& timeline, const Device& device,
                const allocator::AllocatorConfig& settings, bool details, Passes passes = Passes::last);

/// The estimate of a built training graph; `rows` receives its layers. Without details there are no rows, and no
/// tensors of the peak.
TrainingEstimate of(const Graph& g, const Timeline& timeline, std::span<const Work> of_ops, const Plan& plan,
                    const Device& device, const allocator::AllocatorConfig& settings, bool details,
                    std::vector<LayerRow>& rows);

}  // namespace training_estimate

/// Builds the step into c.b.graph and estimates it.
TrainingEstimate estimate_training(Context& c, const Vlm& vlm, const Sequences& s, const Device& device,
                                   Timeline& timeline);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/training.hpp>
#endif
