// SPDX-License-Identifier: Apache-2.0
// Step-3.7: a whole view and tiles of another size, layers of two types with heads of their own, experts in a loop.

#include <gtest/gtest.h>

#include <vlmest/family/step3p7/family.hpp>
#include <vlmest/family/step3p7/rule.hpp>

#include "training_support.hpp"

namespace vlmest::step3p7_family_test {
namespace {

using test::count;
using test::inference;

/// Views of 32 pixels and tiles of 16, of 2 pixels a patch.
Step3p7Family family() {
  Step3p7Family f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .image_size = 32, .patch_size = 2};
  Step3p7Text& t = f.language;
  t.vocab = 100;
  t.hidden = 64;
  t.intermediate = 96;
  t.layers = 4;
  t.heads = 4;
  t.kv_heads = 2;
  t.head_dim = 16;
  t.moe.hidden = 64;
  t.moe.inner = 24;
  t.moe.experts = 5;
  t.moe.top_k = 2;
  t.shared = 40;
  t.window = 20;
  t.full_rotary_dim = 8;
  t.sliding_rotary_dim = 16;
  t.layer_heads = {4, 6, 6, 4};
  t.sliding = {false, true, true, false};
  t.sparse = {false, false, true, true};
  return f;
}
Vlm tiny(Step3p7Family f = family()) {
  Vlm m{.name = "tiny", .type = "step3p7"};
  m.family = std::move(f);
  m.image_processor = image_processor::Step3p7{.size = 32, .tile = 16, .longest_edge = 80, .patch_size = 2};
  m.native = {32, 32};
  return m;
}
Plan plan_of(int images, std::int64_t height = 40, std::int64_t width = 64) {
  Plan p;
  p.text = 16;
  p.images = images;
  p.image_height = height;
  p.image_width = width;
  return p;
}

TEST(Step3p7Family, APictureIsAViewAndWindows) {
  const ImageProcessor rule = tiny().image_processor;
  const ImageLayout one = layout(rule, ImageSize{32, 30}), long_one = layout(rule, ImageSize{10, 32}),
                    large = layout(rule, ImageSize{40, 64});
  EXPECT_EQ(one.tiles, 1);
  EXPECT_EQ(one.llm_tokens, 16);
  EXPECT_EQ(long_one.tile_grid, (Grid{1, 3})) << "windows of its shorter side, a remainder of a fifth is none";
  EXPECT_EQ(large.tile_grid, (Grid{3, 4}));
  EXPECT_EQ(large.llm_tokens, 16 + 12 * 4);
  EXPECT_EQ(large.text_overhead, 2 + 2 * 12 + 2);
  EXPECT_EQ(layout(rule, ImageSize{80, 128}).tile_grid, (Grid{3, 5})) << "scaled down to 50 x 80";
  EXPECT_THROW(layout(rule, ImageSize{32, 4000}), Error);
}

TEST(Step3p7Family, TheTowerRunsOverViewsAndOverTiles) {
  const Graph both = inference(tiny(), plan_of(1)), whole = inference(tiny(), plan_of(1, 32, 32));
  EXPECT_EQ(count(both, "convolution", "vision_model.downsampler2"), 2);
  EXPECT_EQ(count(both, "upsample_bilinear2d", "vision_model.embeddings"), 1) << "positions of tiles alone";
  EXPECT_EQ(count(whole, "convolution", "vision_model.downsampler2"), 1);
  EXPECT_EQ(count(whole, "upsample_bilinear2d", "vision_model.embeddings"), 0);
}

TEST(Step3p7Family, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(2);
  p.vision_chunk = 1;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, "convolution", "vision_model.downsampler2"), 4);
  EXPECT_EQ(count(g, "masked_scatter", "model"), 1);
}

// Sixteen tokens reach all five experts of each of two layers, one token two of them.
TEST(Step3p7Family, ExpertsRunOneAfterTheOther) {
  const Graph g = inference(tiny(), plan_of(0));
  EXPECT_EQ(count(g, "index_add_", "mlp.experts"), 2 * (5 + 2));
}

TEST(Step3p7Family, FlashAttentionIsRefused) {
  Plan p = plan_of(1);
  p.attention = AttentionKind::flash;
  EXPECT_THROW(inference(tiny(), p), Error);
}

TEST(Step3p7Family, TrainsThroughEveryPart) {
  const Graph g = test::training(tiny(), plan_of(1));
  EXPECT_GT(count(g, "convolution_backward", "patch_embedding"), 0);
  EXPECT_GT(count(g, "select_backward", "mlp.experts"), 0);
  EXPECT_GT(count(g, "upsample_bilinear2d_backward", "embeddings"), 0);
}

TEST(Step3p7Family, CopiedLayersGiveTheSameStep) {
  for (const int images : {1, 2})
    for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
      Plan p = plan_of(images);
      p.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false))) << images;
    }
}

}  // namespace
}  // namespace vlmest::step3p7_family_test
