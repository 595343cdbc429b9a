// SPDX-License-Identifier: Apache-2.0
// Phi-4-multimodal: crops and the whole picture with separators, a conformer over clips, both beside each other.
#include <algorithm>

#include <gtest/gtest.h>

#include <vlmest/family/phi4_multimodal/family.hpp>
#include <vlmest/family/phi4_multimodal/rule.hpp>

#include "training_support.hpp"

namespace vlmest::phi4_multimodal_family_test {
namespace {

using test::count;
using test::inference;

/// Crops of 64 pixels, as many patches as the released ones have.
Phi4MultimodalFamily family() {
  Phi4MultimodalFamily f;
  f.vision.patches = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .image_size = 64, .patch_size = 2};
  f.language = LlamaConfig{.vocab = 100,
                           .hidden = 64,
                           .intermediate = 96,
                           .layers = 2,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 16,
                           .packed = true};
  f.audio.hidden = 32;
  f.audio.intermediate = 40;
  f.audio.layers = 2;
  f.audio.heads = 2;
  f.audio.head_dim = 16;
  f.audio.channels = 8;
  f.audio.distance = 600;
  return f;
}
Vlm tiny(Phi4MultimodalFamily f = family()) {
  Vlm m{.name = "tiny", .type = "phi4_multimodal"};
  m.audio = audio::Phi4Clips{.tower = f.audio};
  m.family = std::move(f);
  m.image_processor = image_processor::Phi4Multimodal{.crop_size = 64, .patch_size = 2};
  m.native = {64, 64};
  return m;
}
Plan plan_of(int images, double seconds = 0, int clips = 1) {
  Plan p;
  p.text = 16;
  p.images = images;
  p.image_height = 100;
  p.image_width = 64;
  if (seconds > 0) p.audio = AudioPlan{.seconds = seconds, .clips = clips};
  return p;
}
bool any_shape(const Graph& g, const Shape& s) {
  return std::any_of(g.tensors.begin(), g.tensors.end(),
                     [&](const Tensor& t) { return t.alias_of == none && t.role == Role::activation && t.shape == s; });
}

TEST(Phi4MultimodalFamily, APictureIsItsCropsAndTheWholeOfIt) {
  const ImageLayout l = layout(tiny().image_processor, ImageSize{100, 64});
  EXPECT_EQ(l.tile_grid, (Grid{2, 1}));
  EXPECT_EQ(l.tiles, 3);
  EXPECT_EQ(l.unpadded, (Grid{50, 32}));  // 14 of the 64 rows of patches are padding
  EXPECT_EQ(l.kept, (Grid{25, 16}));
  EXPECT_EQ(l.llm_tokens, 16 * 17 + 1 + 25 * 17);
}

TEST(Phi4MultimodalFamily, CropsBesideAPictureOfMoreAreFilledUp) {
  const ImageLayout l = layout(tiny().image_processor, ImageSize{100, 64});
  EXPECT_EQ(seen_patches(l, 3), (std::vector<std::int64_t>{1024, 1024, 18 * 32}));
  EXPECT_EQ(seen_patches(l, 5), (std::vector<std::int64_t>{1024, 1024, 18 * 32, 1024, 1024}));
}

TEST(Phi4MultimodalFamily, ThePoolingHeadRunsThoughNothingReadsIt) {
  const Graph g = inference(tiny(), plan_of(1));
  EXPECT_EQ(count(g, "baddbmm", "img_processor.head.attention"), 1);
  EXPECT_EQ(count(g, "index_put", "image_embed"), 1);
  EXPECT_TRUE(any_shape(g, {1, 698, 32}));  // features and separators
}

TEST(Phi4MultimodalFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(2);
  p.vision_chunk = 4;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, "convolution", "patch_embedding"), 2);
  EXPECT_EQ(count(g, "index_put", "image_embed"), 1);
}

TEST(Phi4MultimodalFamily, ClipsBesidePicturesHaveAProjectorOfTheirOwn) {
  const Graph alone = inference(tiny(), plan_of(0, 1)), both = inference(tiny(), plan_of(1, 1));
  EXPECT_EQ(count(alone, "addmm", "up_proj_for_speech"), 1);
  EXPECT_EQ(count(alone, "addmm", "up_proj_for_vision_speech"), 0);
  EXPECT_EQ(count(both, "addmm", "up_proj_for_speech"), 0);
  EXPECT_EQ(count(both, "addmm", "up_proj_for_vision_speech"), 1);
  EXPECT_EQ(count(both, "index_put", "embed_tokens_extend"), 2);
}

// One clip comes without a mask, several with one.
TEST(Phi4MultimodalFamily, SeveralClipsHaveAMask) {
  EXPECT_EQ(count(inference(tiny(), plan_of(0, 1)), "bitwise_and.Tensor", "encoder"), 0);
  EXPECT_EQ(count(inference(tiny(), plan_of(0, 1, 2)), "bitwise_and.Tensor", "encoder"), 1);
}

TEST(Phi4MultimodalFamily, LongClipsRunInWindows) {
  const Graph g = inference(tiny(), plan_of(0, 45));
  EXPECT_EQ(count(g, "im2col", "encoder"), 1);
  EXPECT_TRUE(any_shape(g, {2, 500, 32}));
  EXPECT_EQ(count(inference(tiny(), plan_of(0, 40)), "im2col", "encoder"), 0);
  EXPECT_THROW(inference(tiny(), plan_of(0, 45, 2)), Error);
}

TEST(Phi4MultimodalFamily, DistancesWithoutABiasAreRefused) {
  Phi4MultimodalFamily f = family();
  f.audio.symmetric = true;
  f.audio.distance = 100;
  EXPECT_NO_THROW(inference(tiny(f), plan_of(0, 7)));
  EXPECT_THROW(inference(tiny(f), plan_of(0, 9)), Error);
}

TEST(Phi4MultimodalFamily, TrainsThroughEveryPart) {
  const Graph g = test::training(tiny(), plan_of(1, 1));
  EXPECT_GT(count(g, "convolution_backward", "patch_embedding"), 0);
  EXPECT_GT(count(g, "convolution_backward", "audio_embed"), 0);
  EXPECT_GT(count(g, "embedding_dense_backward", "bias_values"), 0);
}

TEST(Phi4MultimodalFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of(1, 1);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

}  // namespace
}  // namespace vlmest::phi4_multimodal_family_test
