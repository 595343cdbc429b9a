// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/device/device.hpp>
#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/report/training.hpp>

/// The time of a training step whose states are divided over GPUs or kept on the host.
namespace vlmest::parallel {

/// Time of Adam on a host's processors: 0.22 s for a thousand million parameters, 2.57 s for ten (Ren et al.,
/// ZeRO-Offload, arXiv:2101.06840, table 4).
inline constexpr double host_adam_seconds = 0.25e-9;

/// What the host does beside launching the graph's kernels, in all forwards and backwards and in the optimizer's step.
struct HostWork {
  Seconds passes, step;
};

/// fully_shard gathers and reduces in every micro-batch; DistributedDataParallel reduces in the last one alone
/// (no_sync).
HostWork host_work(const Strategy& s, const ModelStates& states, std::int64_t micro_batches, const Device& d);

/// How long what is not the model's own takes in a step: collectives beside the forwards and backwards of all
/// micro-batches, those that only the optimizer's end sets off, the optimizer's kernels on this GPU, and what the host
/// does for all forwards and backwards beside launching and what states ask for.
struct StepParts {
  Seconds beside, after, update, host;
};
Seconds step_time(const Strategy& s, const ModelStates& states, const StepParts& parts, const TrainingEstimate& whole,
                  const Device& d);

/// The same over a link of which only the bandwidth is known. `whole` is the step with all of its states on one GPU.
Seconds step_time(const Strategy& s, const ModelStates& states, const StepCollectives& c, const TrainingEstimate& whole,
                  const Device& d);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/step_time.hpp>
#endif
