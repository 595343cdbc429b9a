// SPDX-License-Identifier: Apache-2.0
// Molmo 2: windows of patches of two layers pooled by attention, features added to embeddings in two parameters.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/molmo2/family.hpp>
#include <vlmest/family/molmo2/rule.hpp>

#include "training_support.hpp"

namespace vlmest::molmo2_family_test {
namespace {

using test::count;
using test::inference;
using Norm = Molmo2Text::QkNorm;

/// Crops of 24 pixels, of 2 pixels a patch.
Molmo2Family family() {
  Molmo2Family f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 4, .image_size = 24, .patch_size = 2, .read = {2, 0}};
  f.vision.attention = {.in = 32, .heads = 2, .head_dim = 16};
  f.adapter = {.attention = {.in = 64, .heads = 2, .head_dim = 16}, .intermediate = 40, .masked = true};
  f.language = {.vocab = 100,
                .extra_vocab = 10,
                .hidden = 64,
                .intermediate = 96,
                .layers = 3,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 16,
                .qk_norm = Norm::heads};
  return f;
}
Vlm tiny(Molmo2Family f = family()) {
  Vlm m{.name = "tiny", .type = "molmo2"};
  m.image_processor = image_processor::Molmo2{.image_size = 24, .patch_size = 2, .max_tiles = 4};
  m.family = std::move(f);
  m.native = {24, 24};
  return m;
}
Plan plan_of(int images, std::int64_t height = 24, std::int64_t width = 40) {
  Plan p;
  p.text = 16;
  p.images = images;
  p.image_height = height;
  p.image_width = width;
  return p;
}

TEST(Molmo2Family, AWindowIsAsLargeAsItsMarginsLeave) {
  const image_processor::Molmo2 rule;
  const ImageLayout one = layout(rule, {378, 378});
  EXPECT_EQ(one.tile_grid, (Grid{1, 1}));
  EXPECT_EQ(one.tiles, 2);
  EXPECT_EQ(one.tower_tokens, 729);
  EXPECT_EQ(one.llm_tokens, 14 * 14 * 2);
  EXPECT_EQ(one.text_overhead, 4 + 14);
  const ImageLayout wide = layout(rule, {378, 644});  // one more window of 19 patches
  EXPECT_EQ(wide.tile_grid, (Grid{1, 2}));
  EXPECT_EQ(wide.llm_tokens, 14 * 14 + 14 * 23);
  EXPECT_EQ(layout(rule, {378, 645}).tile_grid, (Grid{1, 3})) << "rather enlarged than shrunk";
  EXPECT_EQ(layout(rule, {4000, 4000}).tile_grid, (Grid{2, 2})) << "3 by 3 are more than eight";
  EXPECT_THROW(layout(image_processor::Molmo2{.margins = {14, 13}}, {378, 378}), Error);
}

// A side that the margins take up scales below zero, or by infinity: what is left decides.
TEST(Molmo2Family, PicturesSmallerThanTheMarginsAreOneWindow) {
  const image_processor::Molmo2 rule;
  EXPECT_EQ(layout(rule, {50, 50}).tile_grid, (Grid{1, 1}));
  EXPECT_EQ(layout(rule, {112, 112}).tile_grid, (Grid{1, 1}));
  EXPECT_EQ(layout(rule, {112, 378}).tile_grid.cols, 1);
}

TEST(Molmo2Family, LimitsCanBeLowered) {
  const ImageProcessor rule = image_processor::Molmo2{};
  const auto less = lower(rule, layout(rule, ImageSize{1080, 1920}));
  ASSERT_FALSE(less.empty());
  EXPECT_EQ(layout(less.back(), ImageSize{1080, 1920}).tiles, 2);
  EXPECT_NE(limit_line(less.back()).find("max_crops=1"), std::string::npos);
}

TEST(Molmo2Family, LayersBehindTheLastOneThatIsReadAreNotMade) {
  const Graph g = inference(tiny(), plan_of(1));
  EXPECT_EQ(count(g, "gelu", "resblocks"), 3) << "of four";
  Molmo2Family all = family();
  all.vision.read = {3};
  all.adapter.attention.in = 32;
  EXPECT_EQ(count(inference(tiny(all), plan_of(1)), "gelu", "resblocks"), 4);
}

TEST(Molmo2Family, EmbeddingsAreJoinedInEveryCall) {
  const Graph g = inference(tiny(), plan_of(1));
  EXPECT_EQ(count(g, "cat", "model.transformer.wte"), 2) << "prefill and decode";
}

TEST(Molmo2Family, AttentionOfTheTowerRunsInFp32) {
  const Graph g = inference(tiny(), plan_of(1));
  EXPECT_EQ(count(g, "_scaled_dot_product_efficient_attention", "vision_backbone"), 4)
      << "three layers and the pooling";
  Molmo2Family narrow = family();
  narrow.vision.attention.wide = false;
  EXPECT_THROW(inference(tiny(narrow), plan_of(1)), Error);
  Plan eager = plan_of(1);
  eager.attention = AttentionKind::eager;
  EXPECT_EQ(count(inference(tiny(narrow), eager), "_softmax", "resblocks"), 3);
}

TEST(Molmo2Family, WhatWasNotComparedIsRefused) {
  Plan p = plan_of(1);
  p.attention = AttentionKind::flash;
  EXPECT_THROW(inference(tiny(), p), Error);
  Plan amp = plan_of(1);
  amp.amp = true;
  EXPECT_THROW(inference(tiny(), amp), Error);
  Plan chunks = plan_of(1);
  chunks.vision_chunk = 1;
  EXPECT_THROW(inference(tiny(), chunks), Error);
  Plan stored = plan_of(1);
  stored.weights = DType::nf4;
  EXPECT_THROW(inference(tiny(), stored), Error);
  Plan sizes = plan_of(1);
  sizes.batch = 2;
  sizes.more_sizes = {{24, 100}};
  EXPECT_THROW(inference(tiny(), sizes), Error);
  Plan adapters = plan_of(1);
  adapters.lora.rank = 4;
  adapters.lora.targets = {"att_proj", "attn_out"};
  EXPECT_NO_THROW(test::training(tiny(), adapters));
  adapters.checkpointing = Checkpointing::full;
  EXPECT_THROW(test::training(tiny(), adapters), Error);
  adapters.images = 0;
  EXPECT_NO_THROW(test::training(tiny(), adapters)) << "nothing is written over the embeddings";
  Plan frozen = plan_of(1);
  frozen.checkpointing = Checkpointing::full;
  frozen.trainable.vision = false;
  EXPECT_NO_THROW(test::training(tiny(), frozen)) << "trained embeddings are no leaves";
  frozen.trainable = {.language = false};
  EXPECT_THROW(test::training(tiny(), frozen), Error);
}

TEST(Molmo2Family, CopiedLayersGiveTheSameStep) {
  for (const bool behind : {false, true})
    for (const int images : {0, 1, 2})
      for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
        Plan p = plan_of(images);
        p.batch = 2;
        p.checkpointing = how;
        Molmo2Family f = family();
        f.language.norm_after = behind;
        if (behind) f.language.qk_norm = Norm::whole;
        const Vlm m = tiny(f);
        EXPECT_EQ(test::rows(test::training(m, p, true)), test::rows(test::training(m, p, false))) << images;
      }
}

}  // namespace
}  // namespace vlmest::molmo2_family_test
