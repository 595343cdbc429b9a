// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <vlmest/parallel/mesh.hpp>
#include <vlmest/parallel/strategy.hpp>

namespace vlmest::parallel {

/// Whose memory holds a state: its own in the GPU's, that of the buckets of which it is a view, or the host's.
enum class Holder : std::uint8_t { gpu, bucket, host };

/// Where one kind of state lives.
struct Placement {
  /// Over which ranks it is divided; none: each has all of it (Shard and Replicate in
  /// torch/distributed/tensor/placement_types.py).
  std::optional<Dimension> shard;
  Holder holder = Holder::gpu;
};

/// Into how many parts it is divided.
constexpr int parts(const Placement& p, const Mesh& m) { return p.shard ? m.size(*p.shard) : 1; }

struct Placements {
  Placement weights, gradients, optimizer;
};

/// Sharding divides the optimizer's states; then gradients too, and with fully_shard the weights while nothing uses
/// them, which they do from the forward to the backward, or only layer by layer (buffers.hpp). The optimizer that runs
/// on the host keeps its states there, and gradients stay on the GPU until it has read them
/// (torchao.optim.CPUOffloadOptimizer); with parameters on the host everything is
/// (torch.distributed.fsdp.CPUOffloadPolicy).
constexpr Placements placements(const Strategy& s) {
  Placements p;
  if (s.sharding == Sharding::optimizer) p.optimizer.shard = Dimension::dp_replicate;
  if (s.sharding >= Sharding::gradients) p.weights.shard = p.gradients.shard = p.optimizer.shard = Dimension::dp_shard;
  if (s.bucket_views && has_buckets(s)) p.gradients.holder = Holder::bucket;
  if (s.offload >= Offload::optimizer) p.optimizer.holder = Holder::host;
  if (s.offload >= Offload::parameters) p.weights.holder = p.gradients.holder = Holder::host;
  return p;
}

/// What part of each kind of state a GPU keeps for itself: 1 / share, or nothing where share is 0.
struct Shares {
  std::int64_t weights = 1, gradients = 1, optimizer = 1;
};

constexpr Shares shares(const Strategy& s) {
  const Placements p = placements(s);
  const Mesh m = mesh(s);
  const auto share = [&](const Placement& of) { return of.holder == Holder::gpu ? parts(of, m) : 0; };
  return {share(p.weights), share(p.gradients), share(p.optimizer)};
}

}  // namespace vlmest::parallel
