// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/family/llava/family.hpp>
#include <vlmest/nn/image_processor/llava.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "family_support.hpp"

/// What the tests of training share: small models and their steps.
namespace vlmest::test {

/// Two layers of vision, three of language: 4 heads of 64, two of keys.
inline Vlm llava() {
  static const ClipVision clip{
      .hidden = 32, .intermediate = 64, .layers = 2, .heads = 2, .image_size = 28, .patch_size = 14};
  static const LlamaConfig llama{
      .vocab = 100, .hidden = 256, .intermediate = 96, .layers = 3, .heads = 4, .kv_heads = 2, .head_dim = 64};
  Vlm m;
  m.family = LlavaFamily{.vision = clip, .projector = {.in = 32, .out = 256}, .language = llama};
  m.image_processor = image_processor::Llava{.image_size = 28, .patch_size = 14};
  m.native = {28, 28};
  return m;
}
/// One layer of vision and Q-Former, two of OPT.
inline Vlm blip2() {
  Vlm m;
  Blip2Family f;
  f.vision = {.hidden = 32, .intermediate = 64, .layers = 1, .heads = 2, .image_size = 28, .patch_size = 14};
  f.qformer = {.hidden = 32, .intermediate = 64, .layers = 1, .heads = 2, .encoder_hidden = 32};
  f.language = {.vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .positions = 128};
  f.query_tokens = 4;
  m.family = f;
  m.image_processor = image_processor::Blip2{.image_size = 28, .patch_size = 14, .query_tokens = 4};
  m.native = {28, 28};
  return m;
}

inline Plan lora_plan(std::vector<std::string> targets = Lora{}.targets) {
  Plan p;
  p.text = 12;
  p.lora.rank = 8;
  p.lora.targets = std::move(targets);
  return p;
}

/// A training step; `copy`: equal layers are recorded once.
inline Graph training(const Vlm& v, const Plan& plan, bool copy = true, Gpu gpu = {}) {
  Builder b;
  b.gpu = gpu;
  {
    Context c{b, plan, stack_of(plan)};
    b.copy_layers = copy;
    build_training(c, v, make_sequences(v, plan));
  }
  return std::move(b.graph);
}

/// Every node: its module, its op, its results and the bytes that are alive while it runs.
inline std::vector<std::string> rows(const Graph& g) {
  std::vector<Bytes> change(g.nodes.size() + 1);
  for (const Tensor& t : g.tensors) {
    if (t.alias_of != none || t.dies == t.born) continue;
    const auto born = static_cast<std::size_t>(t.born);
    change[born] += requested_bytes(t);
    if (t.dies != none) change[std::max(born, static_cast<std::size_t>(t.dies))] -= requested_bytes(t);
  }
  std::vector<std::string> r;
  Bytes live{};
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    live += change[n];
    std::string row = path(g, g.nodes[n].scope) + " " + g.nodes[n].name;
    for (const TensorId t : g.outputs(g.nodes[n])) row += " " + to_string(g.tensor(t).shape);
    r.push_back(row + " " + std::to_string(live.value()));
  }
  return r;
}

}  // namespace vlmest::test
