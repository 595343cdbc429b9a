// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include <vlmest/diagnose/evidence/stack/mode.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/nn/trainable.hpp>
#include <vlmest/parallel/data_parallel_timeline.hpp>
#include <vlmest/parallel/states.hpp>
#include <vlmest/parallel/step_time.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::diagnose {

namespace outcome {

Outcome of(const InferenceEstimate& e, const Plan& plan);
Outcome of(const TrainingEstimate& e, const Plan& plan);

/// The device with less memory, for what a replay of the graph does not see.
inline Device without(Device d, Bytes taken) {
  d.usable_bytes = std::max(Bytes{}, d.usable_bytes - taken);
  return d;
}
inline void add(Outcome& o, Bytes taken) {
  o.peak += taken;
  for (Bytes& p : o.peaks) p += taken;
  o.reserved += taken;
}

/// Weights on the host, copied for each module as it runs and dropped behind it (accelerate's cpu_offload): the largest
/// module's are here at once, and every forward waits for all of them.
Outcome offloaded_inference(const Settings& s, const Device& device, Estimator& estimator);

/// A training step: its time, and its memory where `wanted(outcome)` of that alone is true.
template <class Wanted>
Outcome training(const Settings& s, const Device& device, Estimator& estimator, Wanted&& wanted) {
  TrainingEstimate e = estimator.training_work(s.vlm, s.plan, device);
  const Graph& g = estimator.training_graph();
  const bool placed = s.placement != parallel::Strategy{};
  parallel::ModelStates states;
  parallel::StepCollectives sent;
  Outcome timed = of(e, s.plan);
  if (placed) {
    states = parallel::model_states(g, [&](const Tensor& t) { return trains(s.plan, g, t); });
    sent = parallel::collectives(s.placement, states);
    timed.time = parallel::step_time(s.placement, states, sent, e, device);
  }
  if (!wanted(timed)) return timed;
  if (placed) {
    const auto trained = parallel::trained_weights(g, [&](const Tensor& t) { return trains(s.plan, g, t); });
    const Timeline timeline = parallel::data_parallel_timeline(g, estimator.training_timeline(), s.placement, states,
                                                               trained, device.usable_bytes);
    training_estimate::add_memory(e, g, timeline, device, s.allocator, false);
  } else {
    training_estimate::add_memory(e, g, estimator.training_timeline(), device, s.allocator, false);
  }
  Outcome o = of(e, s.plan);
  o.time = timed.time;
  return o;
}

}  // namespace outcome

/// The batches of settings that group images by size: one with images of each size, in the order of the sizes.
std::vector<Settings> size_groups(const Settings& s);

inline Outcome evaluate(const Settings& s, const Device& device, Mode mode, Estimator& estimator);

namespace outcome {

/// Batches with images of one size each.
Outcome grouped(const Settings& s, const Device& device, Mode mode, Estimator& estimator);

}  // namespace outcome

/// What `s` takes on `device`. The estimator's allocator and details are changed. Of a training step whose time alone,
/// in an outcome that does not fit, `wanted` refuses, no memory is estimated. Throws Error where the settings ask for
/// the impossible.
template <class Wanted>
Outcome evaluate(const Settings& s, const Device& device, Mode mode, Estimator& estimator, Wanted&& wanted) {
  if (s.grouped_by_size) return outcome::grouped(s, device, mode, estimator);
  estimator.allocator = s.allocator;
  estimator.details = false;
  const parallel::Strategy& p = s.placement;
  if (p.gpus < 1 || p.gpus > 1024)
    throw Error("strategy.gpus", std::to_string(p.gpus) + " is out of range", "give 1 to 1024");
  if (mode == Mode::training) return outcome::training(s, device, estimator, wanted);
  if (p.offload == Offload::parameters) return outcome::offloaded_inference(s, device, estimator);
  return outcome::of(estimator(s.vlm, s.plan, device, Phases::inference).inference, s.plan);
}
inline Outcome evaluate(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
  return evaluate(s, device, mode, estimator, [](const Outcome&) { return true; });
}

/// Of settings that group images by size the batch that needs most memory; others as they are.
Settings largest_group(const Settings& s, const Device& device, Mode mode, Estimator& estimator);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/run/impl/outcome.hpp>
#endif
