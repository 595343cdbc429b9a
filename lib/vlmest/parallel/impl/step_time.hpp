// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/parallel/step_time.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {
namespace outcome {

VLMEST_INLINE Traffic collectives(const Strategy& p, std::int64_t micro_batches, Bytes weights, Bytes gradients,
                                  Bandwidth link) {
  if (p.gpus < 2) return {};
  const double ring = static_cast<double>(p.gpus - 1) / p.gpus, passes = static_cast<double>(micro_batches);
  const Seconds w = (weights / link) * ring, g = (gradients / link) * ring;
  switch (p.sharding) {
    case Sharding::none: return {g * 2, {}};
    case Sharding::optimizer: return {g * 2, g};
    case Sharding::gradients: return {(w + g) * passes, {}};
    case Sharding::parameters: return {(w * 2 + g) * passes, {}};
  }
  return {};
}

}  // namespace outcome
}  // namespace vlmest::parallel
