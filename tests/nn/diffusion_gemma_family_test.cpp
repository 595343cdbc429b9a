// SPDX-License-Identifier: Apache-2.0
// DiffusionGemma: what its two stacks share, what a prefill keeps, what a denoising step reads.
#include <gtest/gtest.h>

#include <vlmest/family/diffusion_gemma/family.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/image_processor/gemma4.hpp>
#include <vlmest/transform/training_step.hpp>

#include "family_support.hpp"

namespace vlmest::diffusion_gemma_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t window = 32, canvas = 16, prompt = 40;

Vlm tiny(bool tied = true, bool bias = false) {
  DiffusionGemmaFamily f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 2, .heads = 2, .kv_heads = 2, .head_dim = 16};
  f.language = {.vocab = 100,
                .hidden = 64,
                .intermediate = 96,
                .layers = 5,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 16,
                .full_kv_heads = 1,
                .full_head_dim = 32,
                .attention_bias = bias,
                .keys_as_values = true,
                .window = window,
                .sliding = {true, false, true, true, false},
                .per_layer = 0};
  f.language.moe = {.hidden = 64, .inner = 24, .experts = 6, .top_k = 2};
  f.tied = tied;
  f.canvas = canvas;
  Vlm v{.name = "tiny", .type = "diffusion_gemma", .family = f};
  v.image_processor = image_processor::Gemma4{.soft_tokens = 70};
  v.native = {768, 768};
  return v;
}
Plan text_plan(std::int64_t batch = 1) { return {.batch = batch, .images = 0, .text = prompt}; }

struct Built {
  Graph graph;
  InferenceCaches caches;
};
Built built(const Vlm& v, const Plan& plan, std::int64_t new_tokens, bool copies = true) {
  Built r;
  Builder b;
  b.copy_layers = copies;
  {
    Context c{b, plan, stack_of(plan)};
    const Sequences s = make_sequences(v, plan);
    r.caches = build_inference(c, v, s, s.seq + new_tokens);
  }
  r.graph = std::move(b.graph);
  return r;
}

TEST(DiffusionGemmaFamily, TheDecoderHasTheEncodersWeightsButItsOwnBiases) {
  const auto owned = [](const Graph& g, const char* name) {
    int n = 0;
    for (const Tensor& t : g.tensors)
      n += t.role == Role::weight && name == std::string_view(t.name) &&
           path(g, t.scope).find("model.decoder.layers") != std::string::npos;
    return n;
  };
  const Graph tied = inference(tiny(true, true), text_plan());
  EXPECT_EQ(owned(tied, "weight"), 0);
  EXPECT_EQ(owned(tied, "bias"), 5 * 3 + 3) << "no values of their own in two full layers";
  EXPECT_GT(owned(inference(tiny(false), text_plan()), "weight"), 50);
}

TEST(DiffusionGemmaFamily, AStepReadsTheCacheAndLeavesItAlone) {
  const Built b = built(tiny(), text_plan(), 1);
  ASSERT_EQ(b.caches.prefill.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(b.caches.prefill[i].bytes, b.caches.decode[i].bytes) << i;
  EXPECT_EQ(b.caches.decode_kv, prompt + canvas);
  EXPECT_EQ(b.caches.canvas, canvas);
  EXPECT_EQ(count(b.graph, 1, "cat", "decoder.layers.0.self_attn"), 4) << "two rotations, keys and values";
  EXPECT_EQ(count(b.graph, 1, "mm", "encoder"), 0);
  EXPECT_EQ(count(b.graph, 0, "mm", "decoder"), 0) << "a prompt's logits are never computed";
  EXPECT_EQ(count(b.graph, 0, "mm", "lm_head"), 0);
}

// The last canvas is never encoded.
TEST(DiffusionGemmaFamily, CanvasesBeforeTheLastAreInTheCache) {
  const std::int64_t full = 2 * 2 * 1 * 32;  // keys and values of a token
  for (const auto& [tokens, cached] : {std::pair{1, 0}, {16, 0}, {17, 16}, {32, 16}, {100, 96}}) {
    const Built b = built(tiny(), text_plan(), tokens);
    EXPECT_EQ(b.caches.decode_kv, prompt + cached + canvas) << tokens;
    EXPECT_EQ(b.caches.decode[1].bytes, Bytes((prompt + cached) * full)) << tokens;
    EXPECT_EQ(b.caches.decode[0].bytes, Bytes((window - 1) * 2 * 2 * 2 * 16)) << tokens;
  }
}

TEST(DiffusionGemmaFamily, LogitsOfTheWholeCanvasAreSampled) {
  const Graph g = inference(tiny(), text_plan(2));
  EXPECT_EQ(count(g, 1, "multinomial"), 1);
  EXPECT_EQ(count(g, 1, "logsumexp"), 2) << "the sampler and the stopping criterion";
  for (const Tensor& t : g.tensors)
    if (std::string_view(t.name) == "self_conditioning_logits") {
      EXPECT_EQ(t.shape, (Shape{2, canvas, 100}));
    }
}

TEST(DiffusionGemmaFamily, CopiedLayersAreThoseThatRun) {
  for (const bool tied : {true, false})
    for (const std::int64_t tokens : {1, 20}) {
      const Graph copied = built(tiny(tied), text_plan(), tokens).graph,
                  run = built(tiny(tied), text_plan(), tokens, false).graph;
      ASSERT_EQ(copied.nodes.size(), run.nodes.size());
      ASSERT_EQ(copied.tensors.size(), run.tensors.size());
      for (std::size_t i = 0; i < run.nodes.size(); ++i) {
        const Node &a = copied.nodes[i], &b = run.nodes[i];
        ASSERT_EQ(std::string_view(a.name), b.name) << i;
        ASSERT_EQ(a.scope, b.scope) << i;
        for (std::int32_t e = 0; e < a.inputs + a.outputs; ++e)
          ASSERT_EQ(copied.edges[static_cast<std::size_t>(a.first_edge + e)],
                    run.edges[static_cast<std::size_t>(b.first_edge + e)])
              << path(run, b.scope) << " " << b.name;
      }
      for (std::size_t i = 0; i < run.tensors.size(); ++i) {
        ASSERT_EQ(copied.tensors[i].dies, run.tensors[i].dies) << i;
        ASSERT_EQ(copied.tensors[i].shape, run.tensors[i].shape) << i;
      }
    }
}

TEST(DiffusionGemmaFamily, PicturesAreBlocksInEveryLayer) {
  Vlm v = tiny();
  EXPECT_EQ(count(inference(v, text_plan()), 0, "roll"), 0);
  get<DiffusionGemmaFamily>(v.family).language.blocks_of_images = true;
  const Graph g = inference(v, text_plan());
  EXPECT_EQ(count(g, 0, "roll"), 1) << "without pictures too";
  EXPECT_EQ(count(g, 0, "new_zeros"), 2);
}

TEST(DiffusionGemmaFamily, WhatIsNotModelledIsRefused) {
  const Vlm v = tiny();
  const auto refused = [&](const Plan& p) {
    try {
      inference(v, p);
    } catch (const Error& e) {
      return e.where;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(text_plan()), "accepted");
  Plan p = text_plan();
  p.kv.dtype = DType::int8;
  EXPECT_EQ(refused(p), "plan.kv");
  p = text_plan();
  p.weights = DType::int8;
  EXPECT_EQ(refused(p), "plan.weights");
  p = text_plan();
  p.attention = AttentionKind::flash;
  EXPECT_EQ(refused(p), "plan.attention");
  Builder b;
  p = text_plan();
  Context c{b, p, stack_of(p)};
  EXPECT_THROW(build_training(c, v, make_sequences(v, p)), Error) << "the class computes no loss";
}

TEST(DiffusionGemmaFamily, StepsBelongToModelsThatTakeThem) {
  Plan p = text_plan();
  p.denoising_steps = 12;
  EXPECT_NO_THROW(make_sequences(tiny(), p));
  Vlm other{.name = "other", .family = CausalLm<Gemma4TextConfig>{}};
  EXPECT_THROW(make_sequences(other, p), Error);
}

}  // namespace
}  // namespace vlmest::diffusion_gemma_family_test
