// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/settings.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/memory_curve.hpp>

namespace vlmest::diagnose {

/// A memory limit divided over what a run of inference holds. What stays comes first; of what the components need while
/// they run only the largest is taken off, for they run one after the other; the rest can hold keys and values.
struct MemoryBudget {
  Bytes limit{};
  Bytes weights{};             ///< with buffers
  Bytes inputs{};              ///< token ids, masks, pixels
  Bytes vision{};              ///< most that the vision tower holds besides while it runs, its results included
  Bytes projector{};           ///< the same while the projector does
  Bytes language{};            ///< while the language model reads the prompt; logits and joining of the parts included
  Bytes decode{};              ///< while it writes a token
  Bytes kv{};                  ///< keys and values of the whole batch, when all new tokens are written
  Bytes kv_token{};            ///< of one token, on average over the prompt
  Bytes left{};                ///< for keys and values; negative: what is missing for the others
  std::int64_t kv_tokens = 0;  ///< that fit there, over all sequences

  /// The largest of what components need while they run.
  Bytes working() const { return std::max({vision, projector, language, decode}); }
};

/// The budget of `s` within the device's usable memory. The estimator's allocator and details are changed. Throws Error
/// as estimates do.
inline MemoryBudget budget(const Settings& s, const Device& device, Estimator& estimator) {
  estimator.allocator = s.allocator;
  estimator.details = false;
  const Estimate e = estimator(s.vlm, s.plan, device, Phases::inference);
  const Graph& g = estimator.graph();
  const MemoryCurve curve = inference_curve(g, estimator.timeline(), device, s.allocator);
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
  b.kv_token = Bytes((e.inference.kv_cache.value() + tokens - 1) / tokens);
  b.left = b.limit - b.weights - b.inputs - b.working();
  if (b.left > Bytes{} && b.kv_token > Bytes{}) b.kv_tokens = b.left.value() / b.kv_token.value();
  return b;
}

}  // namespace vlmest::diagnose
