// SPDX-License-Identifier: Apache-2.0
// MiniMax-M3: layers that see chosen blocks of keys, experts beside one for every token, a tower whose patches all see
// each other.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/minimax_m3_vl/family.hpp>
#include <vlmest/family/minimax_m3_vl/rule.hpp>

#include "training_support.hpp"

namespace vlmest::minimax_m3_vl_family_test {
namespace {

using image_processor::MiniMaxM3Vl;
using test::count;
using test::inference;

/// Four layers: of those that choose one is dense and one has experts, and so of those that do not. Blocks of 8 keys,
/// of which three are seen.
MiniMaxM3VlFamily family() {
  MiniMaxM3VlFamily f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 2, .heads = 2};
  f.language.vocab = 100;
  f.language.hidden = 64;
  f.language.dense_intermediate = 96;
  f.language.shared_intermediate = 48;
  f.language.layers = 4;
  f.language.heads = 4;
  f.language.kv_heads = 2;
  f.language.head_dim = 16;
  f.language.rotary_dim = 8;
  f.language.moe = {.hidden = 64, .inner = 32, .experts = 6, .top_k = 2, .gate = ExpertGate::clamped_halves};
  f.language.indexer = {.heads = 2, .head_dim = 16, .block = 8, .topk_blocks = 3, .local_blocks = 1};
  f.language.chooses = {true, false, true, false};
  f.language.sparse = {false, true, true, false};
  f.projector = {.in = 32, .hidden = 40, .out = 64, .merged = 4};
  return f;
}
Vlm tiny(MiniMaxM3VlFamily f = family()) {
  Vlm m{.name = "tiny", .type = "minimax_m3_vl"};
  m.family = std::move(f);
  m.image_processor = MiniMaxM3Vl{};
  m.native = {112, 112};
  return m;
}
Plan plan_of(std::int64_t text, int images = 1) {
  Plan p;
  p.text = text;
  p.images = images;
  p.image_height = p.image_width = 112;
  return p;
}
bool any_shape(const Graph& g, const Shape& s, DType t) {
  return std::any_of(g.tensors.begin(), g.tensors.end(), [&](const Tensor& x) {
    return x.alias_of == none && x.role == Role::activation && x.shape == s && x.dtype == t;
  });
}
std::string refused(const Plan& p) {
  try {
    inference(tiny(), p);
  } catch (const Error& e) {
    return e.where;
  }
  return "accepted";
}

TEST(MiniMaxM3VlFamily, LayersThatChooseMakeMasksOfTheirOwn) {
  const Graph g = inference(tiny(), plan_of(30, 0));
  EXPECT_EQ(count(g, 0, "amax", "self_attn.indexer"), 2);
  EXPECT_EQ(count(g, 0, "topk", "self_attn.indexer"), 2);
  EXPECT_TRUE(any_shape(g, {1, 2, 30, 4}, DType::fp32)) << "scores of four blocks";
  EXPECT_TRUE(any_shape(g, {1, 2, 30, 3}, DType::int64)) << "three of them chosen";
  EXPECT_TRUE(any_shape(g, {1, 4, 30, 30}, DType::bf16)) << "the mask of every query head";
}

// 32 keys fill four blocks, 30 leave two places of the last one.
TEST(MiniMaxM3VlFamily, WhatIsMissingOfTheLastBlockIsFilledUp) {
  EXPECT_EQ(count(inference(tiny(), plan_of(30, 0)), 0, "constant_pad_nd", "indexer"), 2);
  EXPECT_EQ(count(inference(tiny(), plan_of(32, 0)), 0, "constant_pad_nd", "indexer"), 0);
}

TEST(MiniMaxM3VlFamily, BlocksNearbyAreMarkedWhereThereAreAny) {
  MiniMaxM3VlFamily f = family();
  EXPECT_EQ(count(inference(tiny(f), plan_of(30, 0)), 0, "scatter_.value", "self_attn"), 4) << "and in each mask";
  f.language.indexer.local_blocks = 0;
  EXPECT_EQ(count(inference(tiny(f), plan_of(30, 0)), 0, "scatter_.value", "self_attn"), 2);
}

TEST(MiniMaxM3VlFamily, ACacheKeepsTheIndexersKeys) {
  Builder b;
  const Vlm v = tiny();
  const Plan p = plan_of(40, 0);
  Context c{b, p, stack_of(p)};
  const Sequences s = make_sequences(v, p);
  const InferenceCaches caches = build_inference(c, v, s, s.seq + 1);
  ASSERT_EQ(caches.prefill.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t token = 2 * 2 * 16 * 2 + (i % 2 == 0 ? 16 * 2 : 0);  // keys, values; one head of the indexer's
    EXPECT_EQ(caches.prefill[i].bytes, Bytes(token * 40));
  }
}

TEST(MiniMaxM3VlFamily, ExpertsStandBesideOneForEveryToken) {
  const Graph g = inference(tiny(), plan_of(12, 0));
  EXPECT_EQ(count(g, 0, "_grouped_mm", "mlp.experts"), 4);
  EXPECT_EQ(count(g, 0, "mm", "mlp.shared_experts"), 4);
  EXPECT_EQ(count(g, 0, "mm", "layers.0.mlp"), 2);
  EXPECT_EQ(count(g, 0, "clamp", "mlp"), 12) << "two where there is a gate, and one of ids beside experts";
}

TEST(MiniMaxM3VlFamily, APatchSeesThoseOfAllPictures) {
  const Graph g = inference(tiny(), plan_of(12, 2));
  EXPECT_TRUE(any_shape(g, {1, 128, 2, 16}, DType::bf16));
  EXPECT_TRUE(any_shape(g, {32, 40}, DType::bf16)) << "squares through the second half of the projector";
  EXPECT_EQ(count(g, 0, "gelu", "multi_modal_projector"), 2);
  EXPECT_EQ(count(g, 1, "eq.Scalar", "model"), 2 + 1 + 2 * 2) << "placeholders, padding, the choices of two layers";
}

TEST(MiniMaxM3VlFamily, AVideoIsACallOfItsOwn) {
  Plan p = plan_of(12);
  p.video = VideoPlan{.frames = 5};
  p.video->height = p.video->width = 112;
  const Graph g = inference(tiny(), p);
  EXPECT_TRUE(any_shape(g, {3 * 64, 32}, DType::bf16));
  EXPECT_EQ(count(g, 0, "masked_scatter", ""), 2);
}

TEST(MiniMaxM3VlFamily, WhatHasNoPathIsRefused) {
  Plan p = plan_of(12);
  EXPECT_EQ(refused(p), "accepted");
  p.vision_chunk = 1;
  EXPECT_EQ(refused(p), "plan.vision_chunk");
  p = plan_of(12);
  p.attention = AttentionKind::flash;
  EXPECT_EQ(refused(p), "plan.attention");
  p = plan_of(12);
  p.kv.dtype = DType::int8;
  EXPECT_EQ(refused(p), "plan.kv");
}

TEST(MiniMaxM3VlFamily, AFusedRuntimeChoosesWithoutScores) {
  Plan p = plan_of(30, 0);
  p.runtime = runtime_id("fused");
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, 0, "choose_blocks", "indexer"), 2);
  EXPECT_EQ(count(g, 0, "topk", "indexer"), 0);
}

// No gradient comes back to what gives places.
TEST(MiniMaxM3VlFamily, TheIndexerIsNotTrained) {
  const Graph g = test::training(tiny(), plan_of(30));
  EXPECT_GT(count(g, 1, "mm", "self_attn.q_proj"), 0);
  EXPECT_EQ(count(g, 1, "mm", "self_attn.indexer"), 0);
  Plan p = test::lora_plan();
  p.images = 0;
  const Graph adapted = test::training(tiny(), p);
  EXPECT_EQ(count(adapted, 0, "mm", "indexer.q_proj.lora_A"), 2) << "its projection is called as the layer's is";
  EXPECT_EQ(count(adapted, 1, "mm", "indexer"), 0);
  EXPECT_GT(count(adapted, 1, "mm", "self_attn.q_proj.lora_A"), 0);
}

TEST(MiniMaxM3VlFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    MiniMaxM3VlFamily f = family();
    f.language.chooses = {true, true, false, true};
    f.language.sparse = {true, true, false, true};
    Plan p = plan_of(30);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(f), p, true)), test::rows(test::training(tiny(f), p, false)));
  }
}

TEST(MiniMaxM3VlRule, APictureHasATokenAtEitherEnd) {
  const ImageLayout l = layout(MiniMaxM3Vl{}, {672, 672});
  EXPECT_EQ(l.patches, (Grid{48, 48}));
  EXPECT_EQ(l.llm_tokens, 576);
  EXPECT_EQ(l.text_overhead, 2);
  EXPECT_EQ(layout(MiniMaxM3Vl{}, {2000, 2000}).llm_tokens, 576);
}

TEST(MiniMaxM3VlRule, LowerLimitsGiveFewerTokens) {
  const MiniMaxM3Vl r;
  std::int64_t before = layout(r, {1000, 700}).llm_tokens;
  for (const MiniMaxM3Vl& less : lower(r, layout(r, {1000, 700}))) {
    const std::int64_t now = layout(less, {1000, 700}).llm_tokens;
    EXPECT_LT(now, before);
    before = now;
  }
}

// Ahead of each temporal patch "]<]0.0 seconds[>[" (six pieces), around it a token at either end.
TEST(MiniMaxM3VlRule, FramesKeepTheirSize) {
  const ImageLayout l = video_layout(MiniMaxM3Vl{}, {.size = {224, 280}, .frames = 5, .fps = 2});
  EXPECT_EQ(l.frames, 3);
  EXPECT_EQ(l.llm_tokens, 3 * 8 * 10);
  EXPECT_EQ(l.text_overhead, 3 * (2 + 6));
  EXPECT_THROW(video_layout(MiniMaxM3Vl{}, {.size = {224, 270}, .frames = 5, .fps = 2}), Error);
}

}  // namespace
}  // namespace vlmest::minimax_m3_vl_family_test
