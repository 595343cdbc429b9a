// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <vlmest/parallel/mesh.hpp>
#include <vlmest/tensor/dtype.hpp>

namespace vlmest::parallel {

/// What data-parallel GPUs divide among themselves instead of each holding all of it (Rajbhandari et al., ZeRO,
/// arXiv:1910.02054, section 5: stages 1, 2 and 3), as torch does it: ZeroRedundancyOptimizer, fully_shard without and
/// with reshard_after_forward.
enum class Sharding : std::uint8_t { none, optimizer, gradients, parameters };

/// What is kept in the host's memory.
enum class Offload : std::uint8_t { none, optimizer, parameters };

/// What a run chooses: on how many GPUs it trains, and where its states live.
struct Strategy {
  int gpus = 1;  ///< of one host, each with its own sequences
  Sharding sharding = Sharding::none;
  Offload offload = Offload::none;
  /// DistributedDataParallel(gradient_as_bucket_view=True): gradients are views of the buckets that are reduced,
  /// where there are any.
  bool bucket_views = false;
  std::optional<DType>
      reduce_dtype;  ///< fully_shard's MixedPrecisionPolicy(reduce_dtype=...); none: the gradients' own
  bool operator==(const Strategy&) const = default;
};

/// ZeroRedundancyOptimizer divides states among GPUs that are replicas of each other; fully_shard knows shards.
constexpr Mesh mesh(const Strategy& s) {
  return s.sharding >= Sharding::gradients ? Mesh{.dp_shard = s.gpus} : Mesh{.dp_replicate = s.gpus};
}

/// Weights are gathered when they are used: from the other GPUs, from the host (CPUOffloadPolicy), or both.
constexpr bool uses_fully_shard(const Strategy& s) {
  return s.sharding >= Sharding::gradients || s.offload == Offload::parameters;
}

/// Weights do not stay from the forward to the backward, which gathers them once more.
constexpr bool reshards_after_forward(const Strategy& s) {
  return uses_fully_shard(s) && s.sharding != Sharding::gradients;
}

/// GPUs that each hold all weights and gradients, and add the gradients up in buckets (DistributedDataParallel).
constexpr bool has_buckets(const Strategy& s) { return s.gpus > 1 && !uses_fully_shard(s); }

}  // namespace vlmest::parallel
