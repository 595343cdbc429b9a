// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>

/// What the tests of families share: small models built, and their nodes counted.
namespace vlmest::test {

/// Prefill and one decode step, `steps` tokens after the prompt.
inline Graph inference(const Vlm& v, const Plan& plan, const Sequences& s, std::int64_t steps = 1, Gpu gpu = {}) {
  Builder b;
  b.gpu = gpu;
  {
    Context c{b, plan, stack_of(plan)};
    build_inference(c, v, s, s.seq + steps);
  }
  return std::move(b.graph);
}
inline Graph inference(const Vlm& v, const Plan& plan, std::int64_t steps = 1) {
  return inference(v, plan, make_sequences(v, plan), steps);
}

/// The prefill alone, of any batch.
template <class Family>
Graph prefill_graph(const Family& family, const Sequences& s, const Plan& plan = {}) {
  Builder b;
  {
    Context c{b, plan, stack_of(plan)};
    const auto model = make_model(c, family);
    auto inputs = make_inputs(c, family, s);
    Cache cache = make_cache(family.language);
    prefill(c, model, inputs, s, cache);
  }
  return std::move(b.graph);
}

/// Sequences of 7 text tokens around `images` each.
inline Sequences prompts(const ImageProcessor& rule, const std::vector<ImageSize>& images, std::int64_t batch = 1) {
  Sequences s;
  s.batch = batch;
  const auto one = layouts(rule, images);
  for (std::int64_t b = 0; b < batch; ++b) s.images.insert(s.images.end(), one.begin(), one.end());
  for (const auto& l : one) s.image_tokens += l.llm_tokens;
  s.text = 7;
  s.seq = s.text + s.image_tokens;
  return s;
}

/// Nodes called `name` in modules whose path contains `within`: of the whole graph, or of a phase.
inline int count(const Graph& g, std::string_view name, std::string_view within = "") {
  int n = 0;
  for (const auto& node : g.nodes) n += name == node.name && path(g, node.scope).find(within) != std::string::npos;
  return n;
}
inline int count(const Graph& g, int phase, std::string_view name, std::string_view within = "") {
  int n = 0;
  const Phase& p = g.phases[static_cast<std::size_t>(phase)];
  for (NodeId i = p.first; i < p.last; ++i)
    n += name == g.node(i).name && path(g, g.node(i).scope).find(within) != std::string::npos;
  return n;
}

}  // namespace vlmest::test
