// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/parallel/rank_estimate.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE Seconds ParallelEstimate::communicated() const {
  Seconds r;
  for (const CommunicationRow& c : communication) r += c.time;
  return r;
}
VLMEST_INLINE Seconds ParallelEstimate::exposed() const {
  Seconds r;
  for (const CommunicationRow& c : communication) r += c.exposed;
  return r;
}

namespace several {

VLMEST_INLINE std::int64_t most_channels(const Network& n, std::int64_t ranks) {
  for (const Domain& d : n.domains)
    if (d.gpus >= ranks) return d.channels;
  return n.domains.empty() ? 0 : n.domains.back().channels;
}

VLMEST_INLINE double model_flops(const Graph& g, const TrainingEstimate& e, std::span<const Work> of_ops) {
  double r = static_cast<double>(e.work.flops.value());
  const double passes = static_cast<double>(e.micro_batches) / (g.phases.size() > 3 ? 2 : 1);
  for (const SecondForward& s : g.second_forwards)
    r -= passes * static_cast<double>(work(g, s.first, s.last, of_ops).flops.value());
  return r;
}

VLMEST_INLINE Device without(Device d, Bytes taken) {
  d.usable_bytes = std::max(Bytes{}, d.usable_bytes - taken);
  return d;
}

VLMEST_INLINE RankEstimate inference_rank(const InferenceEstimate& e, std::int64_t ranks) {
  RankEstimate r{.ranks = ranks, .weights = e.weights};
  r.prefill = e.prefill.memory.peak;
  r.decode = e.decode.memory.peak;
  r.kv_cache = e.kv_cache;
  r.peak = e.peak;
  r.reserved = std::max(e.prefill.memory.reserved, e.decode.memory.reserved);
  r.fits = e.fits;
  return r;
}

VLMEST_INLINE void add_training(RankEstimate& r, const TrainingEstimate& e) {
  r.weights = e.weights;
  r.gradients = e.gradients;
  r.optimizer = e.optimizer;
  r.forward = e.forward.peak;
  r.backward = e.backward.peak;
  r.step = e.step.peak;
  r.peak = std::max(r.peak, e.peak);
  r.reserved = std::max(r.reserved, e.reserved);
  r.reserved_in_loop = e.reserved_in_loop;
  r.fits = r.fits && e.fits;
}

VLMEST_INLINE Bytes of_role(const Timeline& t, Role role) {
  Bytes r{};
  for (const Storage& s : t.storages())
    if (s.role == role) r += s.bytes;
  return r;
}

}  // namespace several
}  // namespace vlmest::parallel
