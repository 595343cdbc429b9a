// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/analysis/streams.hpp>
#include <vlmest/device/link.hpp>
#include <vlmest/parallel/placement.hpp>
#include <vlmest/parallel/step_time.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE HostWork host_work(const Strategy& s, const ModelStates& states, std::int64_t micro_batches,
                                 const Device& d) {
  const auto passes = static_cast<double>(micro_batches), parameters = static_cast<double>(states.trained_tensors);
  if (has_buckets(s))
    return {d.ddp_parameter.forward * (parameters * passes) + d.ddp_parameter.backward * parameters, {}};
  if (shares(s).weights == 1) return {};
  const auto& w = states.weights;
  const auto units = static_cast<double>(std::count_if(w.begin(), w.end(), [](Bytes b) { return b > Bytes{}; }));
  return {(d.fsdp_module.forward + d.fsdp_module.backward) * (units * passes),
          (d.optimizer_parameter + d.optimizer_shard) * parameters};
}

VLMEST_INLINE Seconds step_time(const Strategy& s, const ModelStates& states, const StepCollectives& c,
                                const TrainingEstimate& whole, const Device& d) {
  const Mesh m = mesh(s);
  const Bandwidth link = peer_link(d);
  const Seconds beside =
      time(c.every_pass, m, link) * static_cast<double>(whole.micro_batches) + time(c.last_pass, m, link);
  const auto ranks = static_cast<double>(parts(placements(s).optimizer, m));
  return step_time(s, states, StepParts{beside, time(c.after, m, link), whole.step_wall * (1 / ranks), {}}, whole, d);
}

VLMEST_INLINE Seconds step_time(const Strategy& s, const ModelStates& states, const StepParts& taken,
                                const TrainingEstimate& whole, const Device& d) {
  const HostWork host = host_work(s, states, whole.micro_batches, d);
  const Mesh m = mesh(s);
  const auto passes = static_cast<double>(whole.micro_batches);
  const auto ranks = static_cast<double>(parts(placements(s).optimizer, m));
  const auto share = [&](const std::vector<Bytes>& of_units) { return (total(of_units) / host_link(d)) * (1 / ranks); };

  // Kernels and launches took turns in setting the pace of the whole step; what is added beside them is not launched
  // between them, so both are known by their ends alone.
  Streams step;
  step.run(Stream::compute, Seconds{std::max(0.0, whole.wall.value - whole.step_wall.value)});
  step.run(Stream::host, whole.passes_host);
  step.run(Stream::host, host.passes + taken.host);
  step.run(Stream::communication, taken.beside);
  // Gradients go to the host as they come; weights that live there come once for the forward and once for the backward.
  if (s.offload != Offload::none) step.run(Stream::to_host, share(states.trained));
  if (s.offload == Offload::parameters) step.run(Stream::from_host, share(states.weights) * (2 * passes));
  step.join();

  Streams update;  // from a moment when all are idle
  if (s.offload == Offload::none) {
    update.run(Stream::compute, taken.update);
  } else {
    update.run(Stream::host, {host_adam_seconds * static_cast<double>(whole.trainable.value()) / ranks});
    // Updated weights come back while others are updated.
    if (s.offload == Offload::optimizer) update.run(Stream::from_host, share(states.trained));
    update.join();
  }
  update.run(Stream::host, host.step);

  step.run(Stream::compute, update.wall());
  step.wait(Stream::communication, Stream::compute);
  step.run(Stream::communication, taken.after);
  return step.wall();
}

}  // namespace vlmest::parallel
