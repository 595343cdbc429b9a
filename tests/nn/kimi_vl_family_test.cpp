// SPDX-License-Identifier: Apache-2.0
// Kimi-VL: all pictures as one sequence through MoonViT, whose attention scores every patch with every other one.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/kimi_vl/family.hpp>
#include <vlmest/family/kimi_vl/rule.hpp>

#include "new_decoders_support.hpp"
#include "training_support.hpp"

namespace vlmest::kimi_vl_family_test {
namespace {

using test::count;
using test::inference;
using test::prefill_graph;
using test::prompts;

KimiVlFamily family() {
  return {.vision = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .table_rows = 6, .table_cols = 6},
          .projector = {.in = 32, .merged = 4, .out = 64},
          .language = test::small_deepseek_v3(3, 1)};
}
Vlm tiny() {
  Vlm m{.name = "tiny", .type = "kimi_vl"};
  m.image_processor = image_processor::KimiVl{};
  m.family = family();
  m.native = {56, 84};
  return m;
}
Plan plan_of(int images) {
  Plan p;
  p.text = 16;
  p.images = images;
  p.image_height = 56;
  p.image_width = 84;
  return p;
}
/// The largest tensor of that name in the tower.
Shape largest(const Graph& g, std::string_view name) {
  Shape r{0};
  for (const Tensor& t : g.tensors)
    if (std::string_view(t.name) == name && path(g, t.scope).find("vision_tower") != std::string::npos &&
        numel(t.shape) > numel(r))
      r = t.shape;
  return r;
}

TEST(KimiVlFamily, EveryPatchIsScoredWithThoseOfAllPictures) {
  const auto s = prompts(image_processor::KimiVl{}, {{56, 84}, {28, 280}}, 2);
  const std::int64_t patches = total_patches(s.images);
  EXPECT_EQ(s.image_tokens * 2, patches / 4);
  for (const AttentionKind how : {AttentionKind::sdpa, AttentionKind::eager}) {
    Plan p;
    p.attention = how;
    const Graph g = prefill_graph(family(), s, p);
    EXPECT_EQ(largest(g, "bmm"), (Shape{2, patches, patches}));
    EXPECT_EQ(count(g, "fill_.Tensor", "vision_tower"), 3 * 4) << "a square of the mask for each picture";
    EXPECT_EQ(count(g, "_local_scalar_dense", "vision_tower"), 3 * 4 * 4) << "whose bounds the host reads";
  }
}

TEST(KimiVlFamily, TheTableIsResampledForEachPicture) {
  const auto s = prompts(image_processor::KimiVl{}, {{84, 84}, {28, 280}});
  const Graph g = prefill_graph(family(), s);
  EXPECT_EQ(count(g, "upsample_bicubic2d", "pos_emb"), 2) << "one of them has the table's size";
}

TEST(KimiVlFamily, RotationsAreKeptForTheLargestGrid) {
  const auto tables = [](const Graph& g) {
    return std::count_if(g.tensors.begin(), g.tensors.end(), [](const Tensor& t) {
      return t.dtype == DType::complex64 && t.alias_of == none && t.shape == Shape{512, 512, 8};
    });
  };
  EXPECT_EQ(tables(prefill_graph(family(), prompts(image_processor::KimiVl{}, {{56, 84}, {28, 280}}))), 1);
  EXPECT_EQ(tables(prefill_graph(family(), prompts(image_processor::KimiVl{}, {}))), 0);
}

TEST(KimiVlFamily, LogitsAreThoseOfAllPositions) {
  const Graph g = inference(tiny(), plan_of(1));
  const auto head = std::find_if(g.nodes.begin(), g.nodes.end(),
                                 [&](const Node& n) { return path(g, n.scope) == "language_model.lm_head"; });
  ASSERT_NE(head, g.nodes.end());
  EXPECT_EQ(g.tensor(g.outputs(*head).front()).shape[0], 16 + 6);
}

TEST(KimiVlFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(3);
  p.vision_chunk = 2;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, "convolution", "patch_embed"), 2);
  EXPECT_EQ(largest(g, "bmm"), (Shape{2, 48, 48}));
}

TEST(KimiVlFamily, WhatWasComparedWithNoRunIsRefused) {
  Plan p = plan_of(1);
  p.attention = AttentionKind::flash;
  EXPECT_THROW(inference(tiny(), p), Error);
  Plan adapters = plan_of(1);
  adapters.lora.rank = 4;
  EXPECT_NO_THROW(test::training(tiny(), adapters));
  adapters.checkpointing = Checkpointing::full;
  EXPECT_THROW(test::training(tiny(), adapters), Error);
  Plan frozen = plan_of(1);
  frozen.checkpointing = Checkpointing::full;
  frozen.trainable.vision = false;
  EXPECT_NO_THROW(test::training(tiny(), frozen)) << "trained embeddings are no leaves";
  frozen.trainable = {.language = false};
  EXPECT_THROW(test::training(tiny(), frozen), Error);
  Plan chunked = plan_of(1);
  chunked.loss = Loss::chunked;
  EXPECT_THROW(test::training(tiny(), chunked), Error);
}

TEST(KimiVlFamily, CopiedLayersGiveTheSameStep) {
  for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager})
    for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
      Plan p = plan_of(2);
      p.attention = attention;
      p.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
    }
}

}  // namespace
}  // namespace vlmest::kimi_vl_family_test
