// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/zero_settings.hpp>
#include <vlmest/plan/plan.hpp>

/// Where DeepSpeed's ZeRO keeps what a training step needs (DeepSpeed 0.19.6, deepspeed/runtime/zero): not torch's
/// ZeroRedundancyOptimizer, whose states have the parameters' type and lie parameter by parameter.
///
/// Stages 1 and 2 (stage_1_and_2.py, DeepSpeedZeroOptimizer): trained weights are views of one flat tensor, of which
/// every rank has all. A rank's partition, an N-th, has an fp32 copy, on which the optimizer runs. In the backward,
/// gradients are copied into a bucket of `reduce_bucket` elements, which is there from the first gradient on
/// (setup_buckets). In stage 2 a gradient goes as soon as it is in the bucket (reduce_ipg_grads), in stage 1 when the
/// backward has ended (reduce_gradients): there the buckets are filled in the order of the parameters. A bucket whose
/// parameters belong to several ranks is copied for the reduction (allreduce_bucket, flatten). What a rank's own
/// parameters get is kept (copy_grads_in_partition) until the step has made a flat fp32 gradient of it.
///
/// Stage 3 (stage3.py, partitioned_param_coordinator.py): weights too are divided, each by itself; those of at most
/// `persistence` elements are whole on every rank all the time. A module's weights are gathered when it runs, and
/// with them those of the next modules, until `prefetch` elements more are asked for or `live` are there; they stay
/// where one of the modules that run within the next `reuse` elements uses them again. Buckets and the partition's
/// gradients exist all the time.
///
/// Before the step the squares of the gradients are summed up in fp64 (get_grad_norm_direct).
namespace vlmest::parallel {

/// What a rank holds.
struct ZeroRank {
  Timeline timeline;
  Bytes weights{};    ///< the flat tensor, or this rank's part, whole small ones too, and frozen weights
  Bytes gradients{};  ///< of this rank's partition, in the weights' type
  Bytes optimizer{};  ///< states and fp32 weights of its partition
};

/// A rank's lifetimes, from those of the graph on one GPU. `order`: the trained parameters in the order of
/// torch.nn.Module.parameters(). Throws Error for a stage or an optimizer that this does not hold for.
ZeroRank zero_rank(const Graph& g, const Timeline& whole, const std::vector<TensorId>& order, const Layout& layout,
                   std::int64_t rank, Optimizer optimizer, const ZeroSettings& settings = {});

/// Elements of a rank's partition: trained parameters one after the other in an N-th that begins at 4 bytes; in stage 3
/// an N-th of each, rounded up.
std::int64_t zero_partition(const Graph& g, const std::vector<TensorId>& order, const Layout& layout);

/// GPU time of a rank's step over its partition, collectives apart: the squares, the flat gradient in the weights' type
/// and in fp32, its unscaling (unscale_and_clip_grads), the optimizer over the fp32 partition, and the copy of what it
/// updated.
Seconds zero_update(std::int64_t partition, DType type, Optimizer optimizer, const Device& device);

namespace zero {

/// The modules that run, in turn: their own weights, from their first node up to, not including, `end`.
struct ModuleRun {
  ScopeId scope = 0;
  NodeId first = 0, end = 0;
};
std::vector<ModuleRun> module_runs(const Graph& g, const std::vector<std::int64_t>& elements);

}  // namespace zero
}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/deepspeed.hpp>
#endif
