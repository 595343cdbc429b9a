// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/qwen3_vl/family.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::qwen3_vl_family_test {
namespace {

using test::count;
using test::inference;

Qwen3VlFamily tiny_family(std::vector<bool> sparse = {}) {
  Qwen3VlFamily f;
  f.vision = {.hidden = 32,
              .intermediate = 48,
              .layers = 4,
              .heads = 2,
              .out_hidden = 64,
              .positions = 49,
              .deepstack = {0, 2}};
  f.language.layers = {.vocab = 100,
                       .hidden = 64,
                       .intermediate = 96,
                       .layers = 3,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 16,
                       .qk_norm = true};
  f.language.moe = {.hidden = 64, .inner = 24, .experts = 6, .top_k = 2};
  f.language.sparse = std::move(sparse);
  return f;
}
Vlm tiny(std::vector<bool> sparse = {}) {
  Vlm v{.name = "tiny", .type = "qwen3_vl", .family = tiny_family(std::move(sparse))};
  v.image_processor = image_processor::Qwen3Vl{};
  v.native = {512, 512};
  return v;
}

const Plan two_images{.batch = 2, .images = 2, .image_height = 256, .image_width = 320, .text = 9};

TEST(Qwen3VlFamily, FeaturesOfEarlyLayersJoinTheFirstDecoderLayers) {
  const Graph g = inference(tiny(), two_images);
  EXPECT_EQ(count(g, 0, "native_layer_norm", "deepstack_merger_list"), 2);
  EXPECT_EQ(count(g, 0, "clone", "language_model"), 2);  // of three decoder layers
  EXPECT_EQ(count(g, 1, "clone", "language_model"), 0);
}

TEST(Qwen3VlFamily, EachImageIsASegmentOfItsOwnSize) {
  const Vlm v = tiny();
  const Plan plan{.batch = 1, .images = 3, .text = 9};
  Sequences s{.batch = 1, .text = 9};
  for (const ImageSize size : {ImageSize{256, 256}, ImageSize{256, 512}, ImageSize{320, 256}}) {
    s.images.push_back(layout(v.image_processor, size));
    s.image_tokens += s.images.back().llm_tokens;
  }
  s.seq = s.text + s.image_tokens;
  ASSERT_EQ(s.image_tokens, 64 + 128 + 80);
  const Graph g = inference(v, plan, s);
  std::vector<std::int64_t> lengths;
  for (const auto& n : g.nodes)
    if (const auto* a = std::get_if<Attention>(&g.op(n)); a && path(g, n.scope) == "model.visual.blocks.0.attn")
      lengths.push_back(a->q_len);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{256, 512, 320}));
  for (const auto& n : g.nodes)
    if (std::string_view(n.name) == "masked_scatter") {
      EXPECT_EQ(numel(g.tensor(g.inputs(n)[2]).shape), Elements(s.image_tokens * 64));
    }
}

TEST(Qwen3VlFamily, TextAloneRunsNoTower) {
  const Graph g = inference(tiny(), {.images = 0, .text = 9});
  EXPECT_EQ(count(g, 0, "convolution"), 0);
  EXPECT_EQ(count(g, 0, "masked_scatter"), 0);
  EXPECT_EQ(count(g, 0, "clone", "language_model"), 0);
}

TEST(Qwen3VlFamily, OnlySparseLayersRouteAndEachTokenGoesToTopKExperts) {
  const Graph g = inference(tiny({true, false, true}), two_images);
  const std::int64_t rows = 2 * 2 * (9 + 2 * 80);
  int products = 0;
  for (const auto& n : g.nodes)
    if (const auto* o = std::get_if<GroupedMatmul>(&g.op(n))) {
      ++products;
      EXPECT_EQ(o->groups, 6);
      EXPECT_TRUE(o->rows == rows || o->rows == 2 * 2) << o->rows;
    }
  EXPECT_EQ(products, 2 * 2 * 2);  // two a sparse layer, in prefill and decode
  EXPECT_EQ(count(g, 0, "silu", "layers.1.mlp.act_fn"), 1);
  EXPECT_EQ(count(g, 0, "topk", "layers.2.mlp.gate"), 1);
}

TEST(Qwen3VlFamily, ExpertsAreDeclaredBeforeTheRouterAndTheNorms) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  const Qwen3VlFamily f = tiny_family({true, true, true});
  make_model(c, f);
  std::vector<std::string> names;
  for (const auto& t : b.graph.tensors)
    if (const std::string p = path(b.graph, t.scope);
        t.role == Role::weight && p.find("language_model.layers.1.") != std::string::npos)
      names.push_back(p.substr(p.find("layers.1.") + 9) + "." + t.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
                                      "self_attn.o_proj.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight",
                                      "mlp.experts.gate_up_proj", "mlp.experts.down_proj", "mlp.gate.weight",
                                      "input_layernorm.weight", "post_attention_layernorm.weight"}));
}

TEST(Qwen3VlFamily, TheFusedProfileMasksNothingAndRunsFewerKernels) {
  Plan fused = two_images;
  fused.runtime = runtime_id("fused");
  const Vlm v = tiny({true, true, true});
  const Graph plain = inference(v, two_images), g = inference(v, fused);
  EXPECT_EQ(count(g, 0, "masked_fill.Scalar"), 0);
  EXPECT_EQ(count(g, 0, "route"), 3);
  EXPECT_EQ(count(g, 0, "_grouped_mm"), count(plain, 0, "_grouped_mm"));
  EXPECT_LT(g.nodes.size(), plain.nodes.size() / 2);
}

TEST(Moe, ActiveExpertsFollowTheOccupancyProblem) {
  const MoeConfig g{.experts = 128, .top_k = 8};
  EXPECT_EQ(active_experts(g, 1), 8);
  EXPECT_EQ(active_experts(g, 2), 16);  // 15.5 on average
  EXPECT_EQ(active_experts(g, 1000), 128);
  EXPECT_EQ(active_experts({.experts = 4, .top_k = 4}, 1), 4);
}

}  // namespace
}  // namespace vlmest::qwen3_vl_family_test
