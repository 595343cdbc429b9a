// SPDX-License-Identifier: Apache-2.0
// ERNIE 4.5 VL: experts by modality, a resampler over squares and pairs of frames, positions that turn in fp32.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/ernie4_5_vl_moe/family.hpp>
#include <vlmest/family/ernie4_5_vl_moe/rule.hpp>

#include "training_support.hpp"

namespace vlmest::ernie4_5_vl_moe_family_test {
namespace {

using image_processor::Ernie4_5Vl;
using test::count;
using test::inference;

/// Three layers, of which the first is dense.
Ernie4_5VlFamily family() {
  Ernie4_5VlFamily f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 2, .heads = 2};
  f.language.vocab = 100;
  f.language.hidden = 64;
  f.language.intermediate = 96;
  f.language.layers = 3;
  f.language.heads = 4;
  f.language.kv_heads = 2;
  f.language.head_dim = 16;
  f.language.sections = {3, 3, 2};
  f.language.sparse = {false, true, true};
  f.language.moe.text = {.hidden = 64, .inner = 24, .experts = 8, .top_k = 2};
  f.language.moe.vision = {.hidden = 64, .inner = 16, .experts = 8, .top_k = 2};
  f.resampler = {.in = 32, .out = 64};
  return f;
}
Vlm tiny(Ernie4_5VlFamily f = family()) {
  Vlm m{.name = "tiny", .type = "ernie4_5_vl_moe"};
  m.family = std::move(f);
  m.image_processor = Ernie4_5Vl{};
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
bool any_shape(const Graph& g, const Shape& s) {
  return std::any_of(g.tensors.begin(), g.tensors.end(),
                     [&](const Tensor& t) { return t.alias_of == none && t.role == Role::activation && t.shape == s; });
}

// A picture of 112 x 112 is 16 tokens; the two around it are seen as well.
TEST(Ernie4_5VlFamily, EachKindOfTokenGoesToItsOwnExperts) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_TRUE(any_shape(g, {10 * 2, 2 * 24})) << "text";
  EXPECT_TRUE(any_shape(g, {18 * 2, 2 * 16})) << "what is seen";
  EXPECT_EQ(count(g, 0, "any", "mlp"), 2);
  EXPECT_EQ(count(g, 1, "_grouped_mm", "vision_moe"), 0) << "a new token is text";
  EXPECT_EQ(count(g, 1, "any", "mlp"), 0);
}

TEST(Ernie4_5VlFamily, WithoutPicturesNothingIsPicked) {
  const Graph g = inference(tiny(), plan_of(12, 0));
  EXPECT_EQ(count(g, 0, "index_put_", "mlp"), 2) << "of the experts' own order";
  EXPECT_EQ(count(g, 0, "_grouped_mm", "vision_moe"), 0);
}

TEST(Ernie4_5VlFamily, APromptWithoutTextIsSeenAsAWhole) {
  const Graph g = inference(tiny(), plan_of(1));
  EXPECT_TRUE(any_shape(g, {17 * 2, 2 * 16}));
}

TEST(Ernie4_5VlFamily, TheRouterIsInFp32AndItsCorrectionIsNotTrained) {
  const Graph g = test::training(tiny(), plan_of(12));
  int routers = 0, corrections = 0;
  for (const Tensor& t : g.tensors) {
    if (t.alias_of != none) continue;
    if (t.role == Role::weight && t.fixed) ++corrections;
    if (t.role == Role::weight && t.shape == Shape{8, 64}) {
      ++routers;
      EXPECT_EQ(t.dtype, DType::fp32);
    }
    EXPECT_FALSE(t.role == Role::gradient && t.shape == (Shape{1, 8}));
  }
  EXPECT_EQ(routers, 4);
  EXPECT_EQ(corrections, 4);
}

// Squares of 2 x 2 patches, each beside itself where there is no second frame.
TEST(Ernie4_5VlFamily, APictureIsResampledBesideItself) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_TRUE(any_shape(g, {16, 128}));
  EXPECT_TRUE(any_shape(g, {16, 256}));
  EXPECT_EQ(count(g, 0, "index_select", "resampler_model"), 2);
}

TEST(Ernie4_5VlFamily, TwoFramesOfAVideoAreOneGridOfTokens) {
  Plan p = plan_of(12, 0);
  p.video = VideoPlan{.frames = 5};
  p.video->height = p.video->width = 560;
  const Graph g = inference(tiny(), p);
  EXPECT_TRUE(any_shape(g, {6 * 1600, 32})) << "the last frame twice";
  EXPECT_TRUE(any_shape(g, {6 * 400, 128}));
  EXPECT_TRUE(any_shape(g, {3 * 400, 256}));
}

TEST(Ernie4_5VlFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(12, 3);
  p.vision_chunk = 2;
  EXPECT_EQ(count(inference(tiny(), p), 0, "mm", "patch_embed"), 2);
}

TEST(Ernie4_5VlFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of(16);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

TEST(Ernie4_5VlRule, LowerLimitsGiveFewerTokens) {
  const Ernie4_5Vl r;
  std::int64_t before = layout(r, {1000, 700}).llm_tokens;
  for (const Ernie4_5Vl& less : lower(r, layout(r, {1000, 700}))) {
    const std::int64_t now = layout(less, {1000, 700}).llm_tokens;
    EXPECT_LT(now, before);
    before = now;
  }
}

// The class has no rate of its own: it takes every frame up to its limit.
TEST(Ernie4_5VlRule, WithoutARateEveryFrameIsTaken) {
  Plan p = plan_of(12, 0);
  p.video = VideoPlan{};
  p.video->seconds = 2;
  EXPECT_EQ(make_sequences(tiny(), p).video->sampled, 60);
  p.video->seconds = 20;
  EXPECT_EQ(make_sequences(tiny(), p).video->sampled, 180);
  p.video->fps = 2;
  EXPECT_EQ(make_sequences(tiny(), p).video->sampled, 40);
}

}  // namespace
}  // namespace vlmest::ernie4_5_vl_moe_family_test
