// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>

#include <vlmest/parallel/link.hpp>
#include <vlmest/parallel/buffers.hpp>
#include <vlmest/parallel/states.hpp>
#include <vlmest/report/training.hpp>

/// The time of a training step whose states are divided over GPUs or kept on the host.
namespace vlmest::parallel {

/// Time of Adam on a host's processors: 0.22 s for a thousand million parameters, 2.57 s for ten (Ren et al.,
/// ZeRO-Offload, arXiv:2101.06840, table 4).
inline constexpr double host_adam_seconds = 0.25e-9;

namespace outcome {

/// What crosses a link in one step, by when it can do so.
struct Traffic {
  Seconds beside;  ///< forward and backward, which hide it
  Seconds after;   ///< the backward
};

/// Collectives over n GPUs move (n - 1) / n of the data in each direction, an all-reduce twice that (Patarasuk, Yuan:
/// Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009). Gradients are reduced once a step, but in shards after
/// every micro-batch; weights are gathered after the step, or, where they are sharded, before every forward, and before
/// every backward too where they do not stay.
Traffic collectives(const Strategy& p, std::int64_t micro_batches, Bytes weights, Bytes gradients, Bandwidth link);

/// What the host does beside launching the graph's kernels, in all forwards and backwards and in the optimizer's step.
struct HostWork {
  Seconds passes, step;
};

/// fully_shard gathers and reduces in every micro-batch; DistributedDataParallel reduces in the last one alone
/// (no_sync).
template <class Trains>
HostWork host_work(const Strategy& p, std::int64_t micro_batches, const Graph& g, Trains&& trains, const Device& d) {
  const auto weights = [&](const Tensor& t) { return t.role == Role::weight && t.alias_of == none; };
  std::int64_t trained = 0;
  for (const Tensor& t : g.loaded()) trained += weights(t) && trains(t) ? 1 : 0;
  const double passes = static_cast<double>(micro_batches), parameters = static_cast<double>(trained);
  if (has_buckets(p))
    return {d.ddp_parameter.forward * (parameters * passes) + d.ddp_parameter.backward * parameters, {}};
  if (shares(p).weights == 1) return {};
  const auto unit_of = units_of_scopes(g);
  std::set<ScopeId> modules;
  for (const Tensor& t : g.loaded())
    if (weights(t)) modules.insert(unit_of[static_cast<std::size_t>(t.scope)]);
  return {(d.fsdp_module.forward + d.fsdp_module.backward) * (static_cast<double>(modules.size()) * passes),
          (d.optimizer_parameter + d.optimizer_shard) * parameters};
}

/// `trains` says which weights of the graph do.
template <class Trains>
Seconds step_time(const Strategy& p, const TrainingEstimate& whole, const Graph& g, Trains&& trains,
                    const Device& device) {
  const Bytes weights = weight_bytes(g).all, gradients = weight_bytes(g, trains).all;
  const HostWork host = host_work(p, whole.micro_batches, g, trains, device);
  const Seconds step = whole.step_wall;
  const Seconds alone{std::max(0.0, whole.wall.value - step.value)};
  const Seconds passes = std::max(alone, whole.passes_host + host.passes);
  Traffic t = collectives(p, whole.micro_batches, weights, gradients, peer_link(device));
  const std::int64_t kept = shares(p).optimizer;
  Seconds update = kept > 1 ? step * (1.0 / static_cast<double>(kept)) : step;
  update = std::max(update, host.step);
  if (p.offload != Offload::none) {
    // Gradients go to the host as they come, updated weights come back while others are updated; weights that live
    // there come once for the forward and once for the backward.
    const std::int64_t gpus = p.sharding == Sharding::none ? 1 : p.gpus;
    const auto share = [&](Bytes b) { return (b / host_link(device)) * (1.0 / static_cast<double>(gpus)); };
    const double adam = host_adam_seconds * static_cast<double>(whole.trainable.value()) / static_cast<double>(gpus);
    t.beside = std::max(t.beside, share(gradients));
    if (p.offload == Offload::parameters)
      t.beside = std::max(t.beside, share(weights) * (2.0 * static_cast<double>(whole.micro_batches)));
    update = (p.offload == Offload::optimizer ? std::max(Seconds{adam}, share(gradients)) : Seconds{adam}) + host.step;
  }
  return std::max(passes, t.beside) + update + t.after;
}

}  // namespace outcome
}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/step_time.hpp>
#endif
