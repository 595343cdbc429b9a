// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace vlmest::parallel {

/// Names of a mesh's dimensions. Both are of data parallelism: each rank has sequences of its own, and states are whole
/// on each rank of the one and divided over the ranks of the other (hybrid sharding over a mesh of two dimensions:
/// torch/distributed/fsdp/_fully_shard/_fully_shard.py, fully_shard, `mesh`).
enum class Dimension : std::uint8_t { dp_replicate, dp_shard };
inline constexpr std::array dimensions{Dimension::dp_replicate, Dimension::dp_shard};

/// GPUs as a grid with names (torch/distributed/device_mesh.py).
struct Mesh {
  int dp_replicate = 1, dp_shard = 1;

  /// Ranks that differ in this dimension alone: those of one process group.
  constexpr int size(Dimension d) const { return d == Dimension::dp_shard ? dp_shard : dp_replicate; }
};

}  // namespace vlmest::parallel
