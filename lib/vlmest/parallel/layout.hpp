// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/plan/plan.hpp>
#include <vlmest/unit/error.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {
namespace parallel {

/// What the GPUs of the data-parallel group divide among themselves: nothing (DistributedDataParallel); optimizer
/// states, gradients too, weights too, as DeepSpeed's ZeRO does (stages 1, 2 and 3); everything, as torch's fully_shard
/// does.
enum class Shard : std::uint8_t { none, zero1, zero2, zero3, fsdp2 };
/// DeepSpeed's.
constexpr bool is_zero(Shard s) { return s == Shard::zero1 || s == Shard::zero2 || s == Shard::zero3; }

}  // namespace parallel

template <>
inline constexpr std::array<std::string_view, 5> words_of<parallel::Shard>{"none", "zero1", "zero2", "zero3", "fsdp2"};

namespace parallel {

/// Where the vision tower is under tensor parallelism: whole on each rank, divided as the language model is, or whole
/// on each rank with the images divided.
enum class Tower : std::uint8_t { replicate, shard, data };

/// In which order a pipeline's stages run forwards and backwards of micro-batches.
enum class ScheduleKind : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble };
struct Schedule {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  int chunks = 1;  ///< of layers that a rank holds (virtual stages); more than one where it is interleaved
  bool operator==(const Schedule&) const = default;
};

/// How a run is laid out over GPUs: the sizes of the mesh's dimensions, and what each of them does.
struct Layout {
  int dp = 1;  ///< replicas, or shards, with sequences of their own
  int tp = 1;  ///< parts of each layer's products
  int pp = 1;  ///< stages of layers
  int cp = 1;  ///< parts of each sequence
  int ep = 1;  ///< parts of the experts
  Shard shard = Shard::none;
  /// DistributedDataParallel(gradient_as_bucket_view=True): gradients are views of the buckets that are reduced.
  bool bucket_views = false;
  bool reshard_after_forward = true;  ///< fully_shard's: weights do not stay from the forward to the backward
  /// What weights are gathered in, and layers run in: fully_shard's MixedPrecisionPolicy(param_dtype=...), over weights
  /// of the plan's dtype; none: their own.
  std::optional<DType> param_dtype;
  std::optional<DType> reduce_dtype;          ///< of gradients in collectives; none: their own
  bool sequence_parallel = false;             ///< norms and residuals divided over tp
  Tower tower = Tower::shard;                 ///< under tp
  Schedule schedule;                          ///< of the pipeline
  std::optional<std::int64_t> micro_batches;  ///< of a step, in the pipeline; none: twice the stages
  std::vector<std::int64_t> stages;           ///< layers of the language model in each stage; none: evenly many
  bool operator==(const Layout&) const = default;

  constexpr std::int64_t gpus() const { return std::int64_t{1} * dp * tp * pp * cp * ep; }
};

/// How the layers of the model are divided: its tensor-parallel plan over tp ranks, or its expert-parallel one over ep.
constexpr LayerShards layer_shards(const Layout& l) {
  return l.ep > 1 ? LayerShards{.ranks = l.ep, .experts = true} : LayerShards{.ranks = l.tp};
}

/// The part of each sequence that one of the ranks runs which divide them.
constexpr SequencePart sequence_part(const Layout& l, int part = 0) { return {.parts = l.cp, .part = part}; }

/// GPUs among which states are replicated or divided: replicas, and those that divide their sequences, whose gradients
/// are of the same weights (accelerate 1.15, parallelism_config.py, dp_shard_cp).
constexpr int holders(const Layout& l) { return l.dp * l.cp; }

/// GPUs that divide layers by the model's plan, all of it or experts alone.
constexpr int layer_ranks(const Layout& l) { return l.tp * l.ep; }
constexpr const char* layer_group(const Layout& l) { return l.ep > 1 ? "ep" : "tp"; }
/// GPUs do nothing but divide layers.
constexpr bool divides_layers_alone(const Layout& l) { return layer_ranks(l) > 1 && l.dp == 1 && l.pp == 1; }

/// How far apart ranks of a group lie, in GPUs: those that divide layers are next to each other, then come replicas,
/// then stages, as torch's mesh has it where its dimensions are named so (init_device_mesh("cuda", (pp, dp, tp))).
constexpr std::int64_t between_replicas(const Layout& l) { return layer_ranks(l); }
constexpr std::int64_t between_stages(const Layout& l) { return std::int64_t{l.dp} * layer_ranks(l); }

/// Micro-batches of a step in the pipeline.
constexpr std::int64_t micro_batches(const Layout& l) { return l.micro_batches.value_or(2 * std::int64_t{l.pp}); }

/// Throws Error for what is laid out in a way that is not modelled yet.
inline void expect_modelled(const Layout& l) {
  // Each rank's attention meets every other's keys: a graph that grows with cp, where other dimensions leave it as is.
  if (l.cp > 1024)
    throw Error("layout.mesh", "cp=" + std::to_string(l.cp) + ": sequences are divided among 1,024 GPUs at most",
                "give cp=1024 or less; dp=N gives each GPU sequences of its own");
  if (l.cp > 1 && (l.tp > 1 || l.pp > 1 || l.ep > 1))
    throw Error("layout.mesh", "cp with tp, pp or ep is not modelled", "give cp=N alone, or with dp=N");
  if (l.cp > 1 && is_zero(l.shard))
    throw Error("layout.shard", std::string(name(l.shard)) + " does not run where sequences are divided",
                "take layout.shard=fsdp2, or leave it out for DistributedDataParallel");
  if (l.param_dtype && (l.shard != Shard::fsdp2 || holders(l) < 2))
    throw Error("layout.param_dtype", "weights are gathered in another type by fully_shard alone",
                "take layout.shard=fsdp2 over several GPUs, or leave it out");
  if (l.tp > 1 && l.ep > 1)
    throw Error("layout.mesh", "tp with ep: transformers 5.17 divides layers by one plan", "give one of them");
  if (l.ep > 1 && l.pp > 1)
    throw Error("layout.mesh", "divided experts in a pipeline are not modelled", "give ep=N alone, or with dp=N");
  if (layer_ranks(l) > 1 && is_zero(l.shard))
    throw Error("layout.shard", std::string(name(l.shard)) + " of layers that transformers divides is not modelled",
                "take layout.shard=fsdp2, or leave it out for DistributedDataParallel");
  if (l.sequence_parallel)
    throw Error("layout.sequence_parallel", "transformers 5.17 does not run it (DistributedConfig: not wired up yet)",
                "leave it out");
  if (l.pp > 1 && l.dp > 1 && is_zero(l.shard))
    throw Error("layout.shard", std::string(name(l.shard)) + " in a pipeline is not modelled",
                "take layout.shard=fsdp2, leave it out for DistributedDataParallel, or give dp=N alone");
  if (l.pp > 1 && l.dp > 1 && l.shard == Shard::fsdp2 && l.tp > 1)
    throw Error("layout.shard", "fsdp2 of divided layers in a pipeline is not modelled",
                "leave it out for DistributedDataParallel, or give dp=N with tp=N or with pp=N");
  // The looped schedules of torch gather a chunk's weights ahead of its tasks (UNSHARD); it has no ZB-H1.
  if (l.pp > 1 && l.dp > 1 && l.shard == Shard::fsdp2 && l.schedule.kind != ScheduleKind::one_f_one_b &&
      l.schedule.kind != ScheduleKind::gpipe)
    throw Error("layout.schedule", "fsdp2 in interleaved and zero-bubble schedules is not modelled",
                "take layout.schedule=1f1b or gpipe, or leave layout.shard out");
}

}  // namespace parallel
}  // namespace vlmest
