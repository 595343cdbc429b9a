// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/nn/parameter_order.hpp>
#include <vlmest/parallel/buffers.hpp>
#include <vlmest/parallel/ddp_buckets.hpp>

namespace vlmest::parallel {

/// The weights that train, in the order of torch.nn.Module.parameters(). `trains` says which do.
template <class Trains>
std::vector<TensorId> trained_weights(const Graph& g, Trains&& trains) {
  std::vector<TensorId> r;
  for (const TensorId id : parameter_order(g, static_cast<TensorId>(g.loaded().size())))
    if (g.tensor(id).alias_of == none && trains(g.tensor(id))) r.push_back(id);
  return r;
}

/// A training step on one of the GPUs, as torch runs it: what it keeps of the states, what is allocated for the
/// collectives, and how it all begins. `memory` is that of the GPU.
inline Timeline data_parallel_timeline(const Graph& g, const Timeline& whole, const Strategy& s,
                                       const ModelStates& states, std::span<const TensorId> trained, Bytes memory) {
  Timeline r = whole;
  if (placements(s).gradients.holder == Holder::bucket) move_into_buckets(r, g);
  r = keep(g, std::move(r), shares(s), true);
  if (g.kept_dtype) r.add(cast_inputs(g, r));
  r.add(data_parallel_storages(g, s, states, collectives(s, states)));
  if (has_buckets(s))
    r.set_up(ddp_set_up(g, whole, trained));
  else
    r.set_up({.divided = divided_weights(g, s, states, memory)});
  return r;
}

}  // namespace vlmest::parallel
