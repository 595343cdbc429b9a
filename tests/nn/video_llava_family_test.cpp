// SPDX-License-Identifier: Apache-2.0
// LLaVA-NeXT-Video, whose frames are pooled, and Video-LLaVA, whose frames have a tower of their own.
#include <gtest/gtest.h>

#include <vlmest/family/llava_next_video/family.hpp>
#include <vlmest/family/llava_next_video/rule.hpp>
#include <vlmest/family/video_llava/family.hpp>
#include <vlmest/family/video_llava/rule.hpp>

#include "training_support.hpp"

namespace vlmest::video_llava_family_test {
namespace {

using test::count;
using test::inference;

const ClipVision tower{.hidden = 32, .intermediate = 64, .layers = 3, .heads = 2, .image_size = 56, .patch_size = 14};
const LlamaConfig text{
    .vocab = 96, .hidden = 64, .intermediate = 80, .layers = 3, .heads = 4, .kv_heads = 2, .head_dim = 16};

Vlm next_video(FramePool pool = FramePool::average, std::int64_t stride = 2) {
  LlavaNextVideoFamily f{.vision = tower, .projector = {.in = 32, .out = 64}, .language = text};
  f.pool = pool;
  f.stride = stride;
  f.channels = f.out_channels = 32;
  Vlm m{.name = "tiny", .type = "llava_next_video", .family = f};
  m.image_processor =
      image_processor::LlavaNextVideo{.image_size = 56, .patch_size = 14, .pinpoints = {{112, 112}}, .stride = stride};
  m.native = {112, 112};
  return m;
}
Vlm two_towers(bool list = false) {
  VideoLlavaFamily f{.vision = tower, .projector = {.in = 32, .out = 64}, .language = text};
  f.layer_list = list;
  Vlm m{.name = "tiny", .type = "video_llava", .family = f};
  m.image_processor = image_processor::VideoLlava{.image_size = 56, .patch_size = 14};
  m.native = {56, 56};
  return m;
}
Plan plan_of(std::int64_t images, std::int64_t frames) {
  Plan p{.batch = 2, .images = images, .text = 12};
  if (frames > 0) p.video = VideoPlan{.frames = frames};
  return p;
}

// 4 x 4 patches of a frame, pooled to 2 x 2.
TEST(LlavaNextVideo, FramesArePooled) {
  const Vlm m = next_video();
  const Sequences s = make_sequences(m, plan_of(0, 6));
  EXPECT_EQ(s.video_tokens, 6 * 4);
  const Graph g = inference(m, plan_of(0, 6));
  EXPECT_EQ(count(g, 0, "avg_pool2d", "vision_resampler.pool"), 1);
  EXPECT_EQ(count(g, 0, "convolution", "vision_tower"), 1);
  EXPECT_EQ(count(inference(m, plan_of(1, 6)), 0, "convolution", "vision_tower"), 2) << "pictures, then frames";
}

TEST(LlavaNextVideo, AConvolutionIsAModuleBehindTheLanguageModel) {
  const Graph g = inference(next_video(FramePool::conv), plan_of(0, 2));
  EXPECT_EQ(count(g, 0, "convolution", "vision_resampler.pool"), 1);
  TensorId last = none, pool = none;
  for (TensorId t = 0; t < static_cast<TensorId>(g.tensors.size()); ++t) {
    if (g.tensor(t).role != Role::weight || g.tensor(t).alias_of != none) continue;
    const std::string at = path(g, g.tensor(t).scope);
    if (at.starts_with("model.language_model")) last = t;
    if (at == "model.vision_resampler.pool" && pool == none) pool = t;
  }
  EXPECT_GT(pool, last);
}

TEST(LlavaNextVideo, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(make_sequences(next_video(FramePool::average, 4), plan_of(0, 2)), Error) << "other tokens are written";
  Vlm m = next_video(FramePool::conv);
  get<LlavaNextVideoFamily>(m.family).feature_layers = {-2, -1};
  get<LlavaNextVideoFamily>(m.family).layer_list = true;
  get<LlavaNextVideoFamily>(m.family).projector.in = 64;
  EXPECT_THROW(inference(m, plan_of(0, 2)), Error) << "two states are wider than the convolution";
  EXPECT_NO_THROW(inference(m, plan_of(1, 0)));
}

// 16 patches of a picture, 17 tokens of a frame.
TEST(VideoLlava, FramesKeepTheClassTokenAndHaveATowerOfTheirOwn) {
  const Sequences s = make_sequences(two_towers(), plan_of(2, 3));
  EXPECT_EQ(s.image_tokens, 2 * 16);
  EXPECT_EQ(s.video_tokens, 3 * 17);
  const Graph g = inference(two_towers(), plan_of(2, 3));
  EXPECT_EQ(count(g, 0, "convolution", "image_tower"), 1);
  EXPECT_EQ(count(g, 0, "convolution", "video_tower"), 1);
  EXPECT_EQ(count(inference(two_towers(), plan_of(2, 0)), 0, "convolution", "video_tower"), 0);
}

TEST(VideoLlava, ChunksOfTheTowerAreJoined) {
  Plan plan = plan_of(2, 3);
  plan.vision_chunk = 1;
  EXPECT_EQ(count(inference(two_towers(), plan), 0, "convolution", "image_tower"), 4);
}

TEST(VideoFamilies, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full})
    for (const Vlm& m : {next_video(), next_video(FramePool::max), two_towers(), two_towers(true)}) {
      Plan plan = plan_of(1, 3);
      plan.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(m, plan, true)), test::rows(test::training(m, plan, false)));
    }
}

}  // namespace
}  // namespace vlmest::video_llava_family_test
