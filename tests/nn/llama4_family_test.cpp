// SPDX-License-Identifier: Apache-2.0
// Llama 4: experts that run on every token, chunked masks, queries scaled by their place, a tower with complex angles.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/llama4/family.hpp>
#include <vlmest/family/llama4/rule.hpp>

#include "training_support.hpp"

namespace vlmest::llama4_family_test {
namespace {

using test::count;
using test::inference;

/// Five layers: experts in the second and fourth, no positions in the third; chunks of 16 tokens.
Llama4Family family() {
  Llama4Family f;
  f.vision = {.hidden = 32,
              .intermediate = 128,
              .layers = 2,
              .heads = 2,
              .image_size = 56,
              .patch_size = 14,
              .output = 48,
              .adapter_in = 48,
              .adapter_out = 48};
  f.language.vocab = 100;
  f.language.hidden = 64;
  f.language.intermediate = 24;
  f.language.dense = 96;
  f.language.layers = 5;
  f.language.heads = 4;
  f.language.kv_heads = 2;
  f.language.head_dim = 16;
  f.language.moe.hidden = 64;
  f.language.moe.inner = f.language.moe.shared = 24;
  f.language.moe.experts = 3;
  f.language.chunk = 16;
  f.language.rotary = f.language.chunked = {true, true, false, true, true};
  f.language.sparse = {false, true, false, true, false};
  return f;
}
Vlm tiny(Llama4Family f = family()) {
  Vlm m{.name = "tiny", .type = "llama4"};
  m.family = std::move(f);
  m.image_processor = image_processor::Llama4{.image_size = 56, .patch_size = 14, .merge = 2};
  m.native = {56, 56};
  return m;
}
Plan plan_of(std::int64_t text, int images = 1, ImageSize image = {56, 56}) {
  Plan p;
  p.batch = 2;
  p.text = text;
  p.images = images;
  p.image_height = image.height;
  p.image_width = image.width;
  return p;
}
bool any_shape(const Graph& g, const Shape& s) {
  for (const Tensor& t : g.tensors)
    if (t.alias_of == none && t.role == Role::activation && t.shape == s) return true;
  return false;
}

TEST(Llama4Family, EveryExpertRunsOnEveryToken) {
  const Graph g = inference(tiny(), plan_of(12));
  const std::int64_t tokens = 2 * (12 + 4 + 3);
  EXPECT_TRUE(any_shape(g, {3 * tokens, 64}));
  EXPECT_TRUE(any_shape(g, {3, tokens, 48}));
  EXPECT_EQ(count(g, 0, "bmm", "experts"), 4) << "two products in two layers";
  EXPECT_EQ(count(g, 0, "repeat"), 2);
  EXPECT_EQ(count(g, 0, "_grouped_mm"), 0);
}

TEST(Llama4Family, AnIdealisedStackSendsTokensToTheChosenOnes) {
  Plan p = plan_of(12);
  p.runtime = runtime_id("fused");
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, 0, "bmm", "experts") + count(g, 0, "repeat"), 0);
  EXPECT_EQ(count(g, 0, "route", "feed_forward"), 2);
  EXPECT_FALSE(any_shape(g, {3 * 2 * (12 + 4 + 3), 64}));
}

TEST(Llama4Family, ATokenHasTheWeightsOfOneExpert) {
  Builder b;
  const Plan p;
  Context c{b, p, stack_of(p)};
  make_model(c, family());
  ASSERT_EQ(b.graph.routed.size(), 4u) << "two matrices in two layers";
  for (const RoutedWeight& w : b.graph.routed)
    EXPECT_EQ((std::pair{w.experts, w.top_k}), (std::pair<std::int64_t, std::int64_t>{3, 1}));
}

TEST(Llama4Family, OnlyLayersWithoutPositionsScaleTheirQueries) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_EQ(count(g, 0, "log1p"), 1);
  EXPECT_EQ(count(g, 0, "log1p", "layers.2"), 1);
  Llama4Family f = family();
  f.language.temperature = false;
  EXPECT_EQ(count(inference(tiny(f), plan_of(12)), 0, "log1p"), 0);
}

// A mask is made where the sequence is longer than a chunk, and only then; it asks in which chunk keys and queries are.
TEST(Llama4Family, ChunksNeedAMaskWhereThereAreSeveral) {
  EXPECT_EQ(count(inference(tiny(), plan_of(12, 0)), 0, "floor_divide"), 0);
  EXPECT_EQ(count(inference(tiny(), plan_of(16, 0)), 0, "floor_divide"), 2);
  EXPECT_EQ(count(inference(tiny(), plan_of(20, 0)), 1, "floor_divide"), 2) << "decoding";
}

TEST(Llama4Family, ACacheKeepsAChunkOfLayersThatSeeNoMore) {
  Builder b;
  const Vlm v = tiny();
  const Plan p = plan_of(40, 0);
  Context c{b, p, stack_of(p)};
  const Sequences s = make_sequences(v, p);
  const InferenceCaches caches = build_inference(c, v, s, s.seq + 1);
  ASSERT_EQ(caches.prefill.size(), 5u);
  const std::int64_t token = 2 * 2 * 2 * 16 * 2;  // of two sequences: keys and values, two heads of 16, two bytes
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(caches.prefill[i].bytes, Bytes(token * (i == 2 ? 40 : 15)));
}

TEST(Llama4Family, TilesGoThroughTheTowerAndItsAdapter) {
  const Graph g = inference(tiny(), plan_of(12, 1, {56, 112}));  // two tiles and the whole, of two sequences
  EXPECT_TRUE(any_shape(g, {6, 17, 32})) << "sixteen patches and a class token";
  EXPECT_TRUE(any_shape(g, {6, 2, 2, 128}));
  EXPECT_EQ(count(g, 0, "gelu", "vision_adapter"), 2);
  EXPECT_EQ(count(g, 1, "mm", "vision_adapter"), 0);
}

TEST(Llama4Family, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(12, 1, {56, 112});
  p.vision_chunk = 4;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, 0, "im2col"), 2);
  EXPECT_EQ(count(g, 0, "mm", "multi_modal_projector"), 1);
}

std::string refused(const Vlm& v, const Plan& p) {
  try {
    inference(v, p);
  } catch (const Error& e) {
    return e.where;
  }
  return "accepted";
}

// The classes make such models, and they run as long as there is no picture.
TEST(Llama4Family, TowersThatDoNotFitAreRefusedWithPictures) {
  const std::string at = "config.json.vision_config.";
  Llama4Family f = family();
  f.vision.intermediate = 127;
  EXPECT_EQ(refused(tiny(f), plan_of(12)), at + "intermediate_size");
  EXPECT_EQ(refused(tiny(f), plan_of(12, 0)), "accepted");
  f = family();
  f.vision.adapter_in = 47;
  EXPECT_EQ(refused(tiny(f), plan_of(12)), at + "projector_input_dim");
  f = family();
  f.vision.output = 47;
  EXPECT_EQ(refused(tiny(f), plan_of(12)), at + "vision_output_dim");
  f = family();
  f.vision.hidden = 36;
  f.vision.intermediate = 144;
  EXPECT_EQ(refused(tiny(f), plan_of(12)), at + "num_attention_heads");
}

TEST(Llama4Family, FlashAttentionIsRefused) {
  Plan p = plan_of(12);
  p.attention = AttentionKind::flash;
  EXPECT_EQ(refused(tiny(), p), "plan.attention");
}

TEST(Llama4Family, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of(16);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

}  // namespace
}  // namespace vlmest::llama4_family_test
