// SPDX-License-Identifier: Apache-2.0
// Muse Glimmer: gated attention, layers that slide and turn, windows as large as the table of positions, folded
// squares.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/muse_glimmer/family.hpp>
#include <vlmest/family/muse_glimmer/rule.hpp>

#include "training_support.hpp"

namespace vlmest::muse_glimmer_family_test {
namespace {

using image_processor::MuseGlimmer;
using test::count;
using test::inference;

/// Five layers, of which the first and the last are full and do not turn; a window of 16 tokens. Two layers of vision,
/// the first in windows of four patches a side.
MuseGlimmerFamily family() {
  MuseGlimmerFamily f;
  f.vision = {
      .hidden = 32, .intermediate = 48, .layers = 2, .heads = 2, .patch_size = 14, .table_rows = 4, .table_cols = 4};
  f.vision.windows = {true, false};
  f.language.vocab = 100;
  f.language.hidden = 64;
  f.language.intermediate = 96;
  f.language.layers = 5;
  f.language.heads = 4;
  f.language.kv_heads = 2;
  f.language.head_dim = 16;
  f.language.window = 16;
  f.language.sliding = f.language.turns = {false, true, true, true, false};
  f.adapter = 40;
  return f;
}
Vlm tiny(MuseGlimmerFamily f = family()) {
  Vlm m{.name = "tiny", .type = "muse_glimmer"};
  m.family = std::move(f);
  m.image_processor = MuseGlimmer{};
  m.native = {112, 112};
  return m;
}
Plan plan_of(std::int64_t text, int images = 1, ImageSize image = {112, 112}) {
  Plan p;
  p.text = text;
  p.images = images;
  p.image_height = image.height;
  p.image_width = image.width;
  return p;
}
bool any_shape(const Graph& g, const Shape& s) {
  return std::any_of(g.tensors.begin(), g.tensors.end(),
                     [&](const Tensor& t) { return t.alias_of == none && t.role == Role::activation && t.shape == s; });
}

TEST(MuseGlimmerFamily, EveryLayerHasAGate) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_EQ(count(g, 0, "mm", "gate_proj"), 10) << "of attention and of the MLP";
  EXPECT_EQ(count(g, 0, "sigmoid", "self_attn"), 5);
}

TEST(MuseGlimmerFamily, OnlyLayersWithABaseTurn) {
  const auto turned = [](std::vector<bool> turns) {
    MuseGlimmerFamily f = family();
    f.language.turns = std::move(turns);
    return count(inference(tiny(f), plan_of(12)), 0, "neg", "language_model");
  };
  EXPECT_EQ(turned({false, true, true, true, false}), 6) << "queries and keys of three layers";
  EXPECT_EQ(turned({false, false, false, false, false}), 0);
}

TEST(MuseGlimmerFamily, ACacheKeepsAWindowOfLayersThatSlide) {
  Builder b;
  const Vlm v = tiny();
  const Plan p = plan_of(40, 0);
  Context c{b, p, stack_of(p)};
  const Sequences s = make_sequences(v, p);
  const InferenceCaches caches = build_inference(c, v, s, s.seq + 1);
  ASSERT_EQ(caches.prefill.size(), 5u);
  const std::int64_t token = 2 * 2 * 16 * 2;  // keys and values, two heads of 16, two bytes
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(caches.prefill[i].bytes, Bytes(token * (i % 4 == 0 ? 40 : 15)));
}

// Eight patches a side are four windows in the first layer and one picture in the second.
TEST(MuseGlimmerFamily, WindowsAreAsLargeAsTheTable) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_TRUE(any_shape(g, {1, 2, 64, 16})) << "the whole";
  EXPECT_TRUE(any_shape(g, {1, 2, 16, 16})) << "a window";
  EXPECT_EQ(count(g, 0, "_scaled_dot_product_cudnn_attention", "vision_tower.layers.0"), 4);
  EXPECT_EQ(count(g, 0, "_scaled_dot_product_cudnn_attention", "vision_tower.layers.1"), 1);
}

TEST(MuseGlimmerFamily, SquaresOfPatchesAreFolded) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_TRUE(any_shape(g, {16, 40}));
  EXPECT_EQ(count(g, 0, "gelu", "vision_adapter"), 2) << "one module behind both linears";
  EXPECT_EQ(count(g, 1, "mm", "vision_adapter"), 0);
}

TEST(MuseGlimmerFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(12, 3);
  p.vision_chunk = 2;
  EXPECT_EQ(count(inference(tiny(), p), 0, "mm", "patch_embedding"), 2);
}

TEST(MuseGlimmerFamily, AVideoIsASequenceOfTemporalPatches) {
  Plan p = plan_of(12, 0);
  p.video = VideoPlan{.frames = 5};
  p.video->height = p.video->width = 112;
  const Graph g = inference(tiny(), p);
  EXPECT_TRUE(any_shape(g, {3 * 64, 32}));
  EXPECT_TRUE(any_shape(g, {3 * 16, 40}));
}

TEST(MuseGlimmerFamily, TheChunkedLossIsRefused) {
  Plan p = plan_of(12);
  p.loss = Loss::chunked;
  try {
    test::training(tiny(), p);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "plan.loss");
  }
}

TEST(MuseGlimmerFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of(16);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

// Two grids are equally near to a square; the order of a Python set decides. (2, 2) and (3, 3) as CPython 3.12 lists
// them: list({(2, 2), (2, 3), (3, 2), (3, 3)}).
TEST(MuseGlimmerRule, OfEquallyNearGridsTheSetsFirstIsTaken) {
  EXPECT_EQ(image_processor::pair_hash({2, 2}), std::uint64_t{1901736143494378007U});
  const std::vector<Grid> order = image_processor::set_order({Grid{2, 2}, {2, 3}, {3, 2}, {3, 3}});
  EXPECT_EQ(order, (std::vector<Grid>{{2, 3}, {3, 2}, {3, 3}, {2, 2}}));
  EXPECT_EQ(image_processor::set_order({Grid{2, 2}, {2, 2}, {2, 2}, {2, 2}}).size(), 1u);
}

TEST(MuseGlimmerRule, LowerLimitsGiveFewerTokens) {
  const MuseGlimmer r;
  std::int64_t before = layout(r, {1000, 700}).llm_tokens;
  for (const MuseGlimmer& less : lower(r, layout(r, {1000, 700}))) {
    const std::int64_t now = layout(less, {1000, 700}).llm_tokens;
    EXPECT_LT(now, before);
    before = now;
  }
  EXPECT_EQ(limit_line(r), "processor = AutoProcessor.from_pretrained(MODEL, max_image_tokens=4096)");
}

// "Time: 0.0s" is seven tokens, behind each temporal patch stands one, and one ahead of all.
TEST(MuseGlimmerRule, TimestampsStandBetweenTemporalPatches) {
  const ImageLayout l = video_layout(MuseGlimmer{}, {.size = {112, 112}, .frames = 5, .fps = 2});
  EXPECT_EQ(l.frames, 3);
  EXPECT_EQ(l.text_overhead, 1 + 3 * (7 + 1));
  EXPECT_TRUE(l.timestamps);
  const ImageLayout late = video_layout(MuseGlimmer{}, {.size = {112, 112}, .frames = 2, .fps = 0.001});
  EXPECT_EQ(late.text_overhead, 1 + 7 + 1) << "the first frame's time alone is written";
}

}  // namespace
}  // namespace vlmest::muse_glimmer_family_test
