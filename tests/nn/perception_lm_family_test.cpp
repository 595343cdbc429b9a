// SPDX-License-Identifier: Apache-2.0
// PerceptionLM: tiles of pictures and frames through timm's Perception Encoder, whose features are pooled.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/perception_lm/family.hpp>
#include <vlmest/family/perception_lm/rule.hpp>

#include "training_support.hpp"

namespace vlmest::perception_lm_family_test {
namespace {

using test::count;
using test::inference;

/// Tiles of 16 pixels, of 2 pixels a patch.
PerceptionLmFamily family(bool class_token = true) {
  PerceptionLmFamily f;
  f.vision = {.hidden = 32,
              .intermediate = 48,
              .layers = 3,
              .heads = 2,
              .image_size = 16,
              .patch_size = 2,
              .class_token = class_token,
              .pool_heads = 2,
              .pool_intermediate = 64};
  f.language = LlamaConfig{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16};
  f.pool = 2;
  return f;
}
Vlm tiny(PerceptionLmFamily f = family()) {
  Vlm m{.name = "tiny", .type = "perception_lm"};
  m.image_processor = image_processor::PerceptionLm{
      .tile_size = 16, .patch_size = 2, .class_token = f.vision.class_token, .max_tiles = 4};
  m.family = std::move(f);
  m.native = {16, 16};
  return m;
}
Plan plan_of(int images, std::int64_t height = 16, std::int64_t width = 16) {
  Plan p;
  p.text = 16;
  p.images = images;
  p.image_height = height;
  p.image_width = width;
  return p;
}

TEST(PerceptionLmFamily, APictureBecomesAsLargeAsTilesAllow) {
  const image_processor::PerceptionLm rule;
  const auto grid = [&](std::int64_t height, std::int64_t width) { return layout(rule, {height, width}).tile_grid; };
  EXPECT_EQ(grid(448, 448), (Grid{6, 6}));
  EXPECT_EQ(grid(480, 640), (Grid{5, 7}));
  EXPECT_EQ(grid(900, 9000), (Grid{1, 10})) << "larger than every grid: the nearest ratio that is not wider";
  EXPECT_EQ(grid(9000, 900), (Grid{18, 2})) << "that is wider";
  const ImageLayout l = layout(rule, {448, 448});
  EXPECT_EQ(l.tiles, 37);
  EXPECT_EQ(l.tower_tokens, 1025);
  EXPECT_EQ(l.llm_tokens, 37 * 256);
  EXPECT_EQ(layout(image_processor::PerceptionLm{.max_tiles = 1}, {448, 448}).tiles, 2) << "a thumbnail and its like";
  EXPECT_EQ(layout(image_processor::PerceptionLm{.pool = 3}, {448, 448}).llm_tokens, 37 * 100);
}

TEST(PerceptionLmFamily, LimitsCanBeLowered) {
  const ImageProcessor rule = image_processor::PerceptionLm{};
  const auto less = lower(rule, layout(rule, ImageSize{448, 448}));
  ASSERT_EQ(less.size(), 35u);
  EXPECT_EQ(layout(less.back(), ImageSize{448, 448}).tiles, 2);
  EXPECT_NE(limit_line(less.back()).find("max_num_tiles=1"), std::string::npos);
  EXPECT_TRUE(lower(ImageProcessor(image_processor::PerceptionLm{.tiling = image_processor::Tiling::never}),
                    layout(rule, ImageSize{448, 448}))
                  .empty());
}

TEST(PerceptionLmFamily, PatchesTurnAndTheClassTokenDoesNot) {
  const Graph g = inference(tiny(), plan_of(1));
  EXPECT_EQ(count(g, "stack", "vision_tower.timm_model.blocks"), 2 * 3);
  PerceptionLmFamily still = family();
  still.vision.rotates = false;
  EXPECT_EQ(count(inference(tiny(still), plan_of(1)), "stack", "vision_tower"), 0);
}

// timm's attention is torch's whatever the run asks for; the language model's is written out.
TEST(PerceptionLmFamily, TheTowersAttentionIsTorchsOwn) {
  Plan p = plan_of(1);
  p.attention = AttentionKind::eager;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, "_softmax", "vision_tower"), 0);
  EXPECT_GT(count(g, "_softmax", "language_model"), 0);
  p.attention = AttentionKind::flash;
  EXPECT_THROW(inference(tiny(), p), Error);
}

TEST(PerceptionLmFamily, PoolsThatNothingReadsRun) {
  PerceptionLmFamily f = family();
  f.vision.pool = EvaPool::attention;
  EXPECT_EQ(count(inference(tiny(f), plan_of(1)), "gelu", "attn_pool.mlp"), 1);
  f.vision.pools = false;
  EXPECT_EQ(count(inference(tiny(f), plan_of(1)), "gelu", "attn_pool.mlp"), 0);
  f.vision.pool = EvaPool::mean_and_max;
  f.vision.pools = true;
  EXPECT_EQ(count(inference(tiny(f), plan_of(1)), "amax", "vision_tower"), 1);
}

TEST(PerceptionLmFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(2);
  p.vision_chunk = 3;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, "convolution", "patch_embed"), 4) << "ten tiles";
  EXPECT_EQ(count(g, "masked_scatter", "model"), 1);
}

TEST(PerceptionLmFamily, PicturesWithDifferentTilesAreNoBatch) {
  const Vlm m = tiny();
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  Sequences s{.batch = 1, .text = 8, .seq = 8};
  s.images = {layout(m.image_processor, ImageSize{16, 16}), layout(m.image_processor, ImageSize{90, 300})};
  ASSERT_NE(s.images[0].tiles, s.images[1].tiles);
  EXPECT_THROW(m.family.make_inputs(c, s), Error);
}

TEST(PerceptionLmFamily, TrainsThroughEveryPart) {
  const Graph g = test::training(tiny(), plan_of(1));
  EXPECT_GT(count(g, "convolution_backward", "model"), 0);
  EXPECT_GT(count(g, "_adaptive_avg_pool2d_backward", "model"), 0);
}

TEST(PerceptionLmFamily, CopiedLayersGiveTheSameStep) {
  for (const bool class_token : {true, false})
    for (const int images : {1, 2})
      for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
        Plan p = plan_of(images);
        p.checkpointing = how;
        const Vlm m = tiny(family(class_token));
        EXPECT_EQ(test::rows(test::training(m, p, true)), test::rows(test::training(m, p, false))) << images;
      }
}

}  // namespace
}  // namespace vlmest::perception_lm_family_test
