// SPDX-License-Identifier: Apache-2.0
// Phi-3-vision: crops of a picture and empty ones, rows with separators, features in the places of negative ids,
// attention written out.
#include <gtest/gtest.h>

#include <vlmest/family/phi3_v/family.hpp>
#include <vlmest/family/phi3_v/rule.hpp>

#include "new_decoders_support.hpp"
#include "training_support.hpp"

namespace vlmest::phi3_v_family_test {
namespace {

using test::count;
using test::prefill_graph;
using test::prompts;

Phi3VFamily family() {
  Phi3VFamily f;
  f.vision.tower = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .image_size = 336, .patch_size = 14};
  f.language = {.vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16};
  f.language.rope = Phi3VText::Rope::su;
  return f;
}
Vlm tiny() {
  Vlm m{.name = "tiny", .type = "phi3_v"};
  m.image_processor = image_processor::Phi3V{};
  m.family = family();
  m.native = {336, 336};
  return m;
}
const image_processor::Phi3V rule;

TEST(Phi3VFamily, EmptyCropsGoThroughTheTower) {
  const auto wide = prompts(rule, {{300, 1500}});
  EXPECT_EQ(wide.images.front().tile_grid, (Grid{1, 4}));
  EXPECT_EQ(wide.images.front().tiles, 5);
  const auto tall = prompts(rule, {{1000, 500}});
  EXPECT_EQ(tall.images.front().tile_grid, (Grid{2, 1}));
  EXPECT_EQ(tall.images.front().tiles, 5) << "two of them are empty";
  EXPECT_EQ(tall.images.front().llm_tokens, 3 * 144 + 1 + 3 * 12);
}

TEST(Phi3VFamily, AnglesAreMadeInEveryLayer) {
  const Graph g = prefill_graph(family(), prompts(rule, {}));
  EXPECT_EQ(count(g, "cos", "model"), 2);
  EXPECT_EQ(count(g, "_scaled_dot_product_flash_attention", "model"), 0);
  EXPECT_EQ(count(g, "_softmax", "model"), 2);
}

TEST(Phi3VFamily, AttentionIsWhatItsCodeRunsWhateverIsAskedFor) {
  for (const AttentionKind kind : {AttentionKind::sdpa, AttentionKind::eager}) {
    Plan p;
    p.attention = kind;
    const Graph g = prefill_graph(family(), prompts(rule, {{336, 336}}), p);
    EXPECT_EQ(count(g, "_softmax", "model.layers"), 2);
    EXPECT_EQ(count(g, "_softmax", "model.vision_embed_tokens"), 0);
  }
}

TEST(Phi3VFamily, FeaturesOfAllPicturesArePlacedAtOnce) {
  EXPECT_EQ(count(prefill_graph(family(), prompts(rule, {{336, 336}, {900, 400}}, 2)), "index_put", "model"), 1);
  EXPECT_EQ(count(prefill_graph(family(), prompts(rule, {})), "nonzero", "model"), 0);
}

TEST(Phi3VFamily, SequencesBeyondTheWindowAreRefused) {
  Phi3VFamily f = family();
  f.language.window = 700;
  EXPECT_THROW(prefill_graph(f, prompts(rule, {{336, 336}})), Error);
  EXPECT_NO_THROW(prefill_graph(f, prompts(rule, {})));
}

TEST(Phi3VFamily, WhatWasNotComparedIsRefused) {
  Plan p;
  p.text = 16;
  p.image_height = p.image_width = 336;
  EXPECT_NO_THROW(test::training(tiny(), p));
  Plan flash = p, amp = p, chunk = p;
  flash.attention = AttentionKind::flash;
  amp.amp = true;
  chunk.vision_chunk = 1;
  for (const Plan& other : {flash, amp, chunk}) EXPECT_THROW(test::training(tiny(), other), Error);
}

}  // namespace
}  // namespace vlmest::phi3_v_family_test
