// SPDX-License-Identifier: Apache-2.0
// Gemma 4: which layers keep keys, what layers get beside their input, what the tower sees of padding.
#include <gtest/gtest.h>

#include <vlmest/family/gemma4/unified.hpp>
#include <vlmest/nn/image_processor/gemma4.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "family_support.hpp"

namespace vlmest::gemma4_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t window = 32;

Gemma4TextConfig tiny_text(std::int64_t shared = 2, std::int64_t per_layer = 8, std::int64_t experts = 0) {
  Gemma4TextConfig t{.vocab = 100,
                     .hidden = 64,
                     .intermediate = 96,
                     .layers = 5,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .full_kv_heads = 1,
                     .full_head_dim = 32,
                     .shared = shared,
                     .window = window,
                     .sliding = {true, false, true, true, false},
                     .per_layer = per_layer,
                     .per_layer_vocab = 100};
  if (experts > 0) t.moe = {.hidden = 64, .inner = 24, .experts = experts, .top_k = 2};
  return t;
}
Vlm tiny(const Gemma4TextConfig& text) {
  Gemma4Family f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 2, .heads = 2, .kv_heads = 2, .head_dim = 16};
  f.language = text;
  Vlm v{.name = "tiny", .type = "gemma4", .family = f};
  v.image_processor = image_processor::Gemma4{.soft_tokens = 70};
  v.native = {768, 768};
  return v;
}
Vlm tiny_unified() {
  Gemma4UnifiedFamily f;
  f.vision.hidden = 32;
  f.language = tiny_text(0, 0);
  f.language.blocks_of_images = true;
  Vlm v{.name = "tiny", .type = "gemma4_unified", .family = f};
  v.image_processor = image_processor::Gemma4{.soft_tokens = 70, .merged = true};
  v.native = {768, 768};
  return v;
}
Plan text_plan(std::int64_t tokens, std::int64_t batch = 2) { return {.batch = batch, .images = 0, .text = tokens}; }
Plan image_plan() { return {.batch = 2, .images = 1, .image_height = 512, .image_width = 768, .text = 9}; }

std::vector<CacheEntry> decoded(const Vlm& v, std::int64_t tokens) {
  Builder b;
  const Plan plan = text_plan(tokens, 1);
  Context c{b, plan, stack_of(plan)};
  const Sequences s = make_sequences(v, plan);
  return build_inference(c, v, s, s.seq + 1).decode;
}

TEST(Gemma4Family, LayersThatShareKeepNothingAndSlidingOnesAWindow) {
  for (const std::int64_t tokens : {10, 100}) {
    const std::vector<CacheEntry> entries = decoded(tiny(tiny_text()), tokens);
    ASSERT_EQ(entries.size(), 3u) << "of five layers two share";
    const std::int64_t all = tokens + 1, kept = std::min(all, window - 1);
    const std::int64_t sliding = 2 * 2 * 2 * 16, full = 2 * 2 * 1 * 32;
    EXPECT_EQ(entries[1].bytes, Bytes(all * full));
    EXPECT_GE(entries[0].bytes, Bytes(kept * sliding));
    EXPECT_LE(entries[0].bytes, Bytes((kept + 1) * sliding));
  }
}

TEST(Gemma4Family, LayersThatShareHaveNoKeysOfTheirOwn) {
  const Graph g = inference(tiny(tiny_text()), text_plan(10));
  EXPECT_EQ(count(g, 0, "mm", "layers.2.self_attn"), 4);
  EXPECT_EQ(count(g, 0, "mm", "layers.3.self_attn"), 2);
  EXPECT_EQ(count(g, 0, "cat", "layers.3.self_attn"), 1) << "the rotation alone";
}

TEST(Gemma4Family, KeysAreValuesInFullLayersAlone) {
  Gemma4TextConfig t = tiny_text(0);
  t.keys_as_values = true;
  const Graph g = inference(tiny(t), text_plan(10));
  EXPECT_EQ(count(g, 0, "mm", "layers.0.self_attn"), 4);
  EXPECT_EQ(count(g, 0, "mm", "layers.1.self_attn"), 3);
}

TEST(Gemma4Family, EveryLayerGetsItsPartOfTheTokens) {
  const Graph with = inference(tiny(tiny_text()), text_plan(10));
  EXPECT_EQ(count(with, 0, "embedding", "embed_tokens_per_layer"), 1);
  EXPECT_EQ(count(with, 0, "mm", "per_layer_input_gate"), 5);
  const Graph without = inference(tiny(tiny_text(2, 0)), text_plan(10));
  EXPECT_EQ(count(without, 0, "mm", "per_layer"), 0);
  EXPECT_EQ(count(without, 0, "embedding"), 1);
}

TEST(Gemma4Family, ExpertsRunBesideTheMlp) {
  const Graph g = inference(tiny(tiny_text(2, 8, 6)), text_plan(40));
  for (const char* layer : {"layers.0", "layers.4"}) {
    EXPECT_EQ(count(g, 0, "topk", layer), 1) << layer;
    EXPECT_EQ(count(g, 0, "mm", std::string(layer) + ".mlp"), 3) << layer;
  }
}

TEST(Gemma4Family, PaddingNeedsAMask) {
  const Vlm v = tiny(tiny_text());
  const auto masks = [&](std::int64_t height, std::int64_t width) {
    Plan p = image_plan();
    p.image_height = height;
    p.image_width = width;
    return count(inference(v, p), 0, "new_ones", "encoder");
  };
  EXPECT_EQ(masks(480, 336), 0) << "10 x 7 tokens fill the budget";
  EXPECT_EQ(masks(512, 768), 1);
}

TEST(Gemma4Family, PicturesAreBlocksWhereTheConfigSaysSo) {
  Gemma4TextConfig t = tiny_text();
  EXPECT_EQ(count(inference(tiny(t), image_plan()), 0, "roll"), 0);
  t.blocks_of_images = true;
  const Graph g = inference(tiny(t), image_plan());
  EXPECT_EQ(count(g, 0, "roll"), 1);
  EXPECT_EQ(count(g, 1, "roll"), 0) << "a step has no types";
  const Graph both = inference(tiny_unified(), image_plan());
  EXPECT_EQ(count(both, 0, "new_zeros"), 2) << "full layers see blocks too";
  EXPECT_EQ(count(both, 1, "new_zeros"), 2);
}

TEST(Gemma4Family, TextAloneRunsNoTower) {
  const Graph g = inference(tiny(tiny_text()), text_plan(40));
  EXPECT_EQ(count(g, "mm", "vision_tower"), 0);
  EXPECT_EQ(count(inference(tiny_unified(), text_plan(40)), "addmm", "embed_vision"), 0);
}

TEST(Gemma4Family, ImagesRunInChunks) {
  Plan p = image_plan();
  p.vision_chunk = 1;
  for (const Vlm& v : {tiny(tiny_text()), tiny_unified()}) {
    const Graph g = inference(v, p), whole = inference(v, image_plan());
    EXPECT_EQ(count(g, 0, "ne.Scalar"), 2 * count(whole, 0, "ne.Scalar")) << v.type;
  }
}

TEST(Gemma4Family, WhatItsAttentionHasNoPathForIsRefused) {
  Plan fused = text_plan(40), flash = fused;
  fused.runtime = runtime_id("fused");
  flash.attention = AttentionKind::flash;
  for (const auto& [plan, where] : {std::pair{fused, "plan.runtime"}, std::pair{flash, "plan.attention"}}) {
    try {
      inference(tiny(tiny_text()), plan);
      FAIL() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.where, where);
      EXPECT_FALSE(e.hint.empty());
    }
  }
}

TEST(Gemma4Family, CheckpointedLayersMayLendKeys) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan plan = image_plan();
    plan.checkpointing = how;
    Builder b;
    Context c{b, plan, stack_of(plan)};
    const Vlm v = tiny(tiny_text());
    build_training(c, v, make_sequences(v, plan));
    EXPECT_GT(b.graph.nodes.size(), 1000u);
  }
}

}  // namespace
}  // namespace vlmest::gemma4_family_test
