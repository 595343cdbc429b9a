// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/planner/budget.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE MemoryBudget budget(const Settings& s, const Device& device, Estimator& estimator) {
  estimator.allocator = s.allocator;
  estimator.details = false;
  const Estimate e = estimator(s.vlm, s.plan, device, Phases::inference);
  const Graph& g = estimator.graph();
  const MemoryCurve curve = memory_curve(g, estimator.timeline(), device, s.allocator);
  const auto of = [](const MemorySample& m, Role r) { return m.by_role[static_cast<std::size_t>(r)]; };
  MemoryBudget b{.limit = device.usable_bytes, .kv = e.inference.kv_cache_decoded};
  for (const CurvePhase& p : curve.phases)
    for (std::size_t i = p.first; i < p.last; ++i) {
      const MemorySample& m = curve.samples[i];
      const Bytes weights = of(m, Role::weight) + of(m, Role::buffer), inputs = of(m, Role::input);
      b.weights = std::max(b.weights, weights);
      b.inputs = std::max(b.inputs, inputs);
      const Part part = g.scopes[static_cast<std::size_t>(g.node(m.node).scope)].part;
      Bytes& most = &p != &curve.phases.front() ? b.decode
                    : part == Part::vision      ? b.vision
                    : part == Part::projector   ? b.projector
                                                : b.language;
      most = std::max(most, m.allocated - weights - inputs - of(m, Role::kv_cache));
    }
  const std::int64_t tokens = checked_mul(e.sequences.batch, e.sequences.seq);
  const Bytes states = e.inference.cache_states;  // of linear attention: the same for any number of tokens
  b.kv_token = Bytes(((e.inference.kv_cache - states).value() + tokens - 1) / tokens);
  b.left = b.limit - b.weights - b.inputs - b.working() - states;
  if (b.left > Bytes{} && b.kv_token > Bytes{}) b.kv_tokens = b.left.value() / b.kv_token.value();
  return b;
}

}  // namespace vlmest::diagnose
