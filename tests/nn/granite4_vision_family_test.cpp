// SPDX-License-Identifier: Apache-2.0
// Granite 4 Vision: Q-Formers over windows of the tower's states, whose features layers of the language model add.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/granite4_vision/family.hpp>
#include <vlmest/family/granite4_vision/rule.hpp>

#include "training_support.hpp"

namespace vlmest::granite4_vision_family_test {
namespace {

using test::count;
using test::inference;

/// Tiles of eight patches a side, windows of four, two queries a side of each; four layers of text.
Granite4VisionFamily family() {
  Granite4VisionFamily f;
  f.vision = SiglipVision{
      .hidden = 64, .intermediate = 96, .layers = 3, .heads = 2, .image_size = 32, .patch_size = 4, .head = false};
  f.projector.qformer = {
      .hidden = 64, .intermediate = 80, .layers = 1, .heads = 1, .cross_every = 1, .encoder_hidden = 64};
  f.projector.side = 8;
  f.projector.window = 4;
  f.projector.query = 2;
  f.projector.out = 48;
  f.language = {.vocab = 100,
                .hidden = 48,
                .intermediate = 72,
                .layers = 4,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 12,
                .multipliers = true};
  f.layer_map = {{-1, 0}, {1, 2}};
  f.spatial_targets = {1, 3};
  return f;
}
Vlm tiny(Granite4VisionFamily f = family()) {
  Vlm m{.name = "tiny", .type = "granite4_vision"};
  m.family = std::move(f);
  m.image_processor =
      image_processor::Granite4Vision{.image_size = 32, .patch_size = 4, .pinpoints = {{32, 64}}, .tile = {4, 4}};
  m.native = {32, 64};
  return m;
}
Plan plan_of(std::int64_t text, int images = 1) {
  Plan p;
  p.text = text;
  p.images = images;
  p.image_height = 32;
  p.image_width = 64;
  return p;
}

TEST(Granite4VisionFamily, APictureIsTilesOfHalfAsManyFeaturesASide) {
  const ImageLayout l = layout(tiny().image_processor, ImageSize{32, 64});
  EXPECT_EQ(l.tiles, 3);
  EXPECT_EQ(l.llm_tokens, 16 + 4 * (8 + 1));
}

TEST(Granite4VisionFamily, EachLayerHasAProjectorOfItsOwn) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_EQ(count(g, 0, "addmm", "out_linear"), 4);
  EXPECT_EQ(count(g, 0, "_adaptive_avg_pool2d"), 2) << "of the two that are no corners";
  EXPECT_EQ(count(g, 0, "masked_scatter", "language_model"), 4);
  EXPECT_EQ(count(g, 1, "masked_scatter"), 0);
  EXPECT_EQ(count(g, 0, "masked_fill.Scalar"), 1) << "nothing stands in the place of placeholders";
  EXPECT_EQ(count(inference(tiny(), plan_of(12, 0)), 0, "masked_scatter"), 0);
}

// Two lists for one layer: the later one replaces the other. A list for no layer is made all the same.
TEST(Granite4VisionFamily, LaterFeaturesReplaceEarlierOnes) {
  Granite4VisionFamily f = family();
  f.spatial_targets = {0, 17};
  const Graph g = inference(tiny(f), plan_of(12));
  EXPECT_EQ(count(g, 0, "addmm", "out_linear"), 4);
  EXPECT_EQ(count(g, 0, "masked_scatter", "language_model"), 2);
}

TEST(Granite4VisionFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(12, 3);
  p.vision_chunk = 2;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, 0, "convolution"), 2);
  EXPECT_EQ(count(g, 0, "addmm", "out_linear"), 8);
  EXPECT_EQ(count(g, 0, "masked_scatter", "language_model"), 4);
}

// The Q-Former's class has none, and so transformers refuses the model.
TEST(Granite4VisionFamily, FlashAttentionIsRefused) {
  Plan p = plan_of(12, 0);
  p.attention = AttentionKind::flash;
  try {
    inference(tiny(), p);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "plan.attention");
  }
}

TEST(Granite4VisionFamily, TheChunkedLossIsRefused) {
  Plan p = plan_of(12);
  p.loss = Loss::chunked;
  try {
    test::training(tiny(), p);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "plan.loss");
  }
}

TEST(Granite4VisionFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of(16);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

}  // namespace
}  // namespace vlmest::granite4_vision_family_test
