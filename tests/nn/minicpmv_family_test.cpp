// SPDX-License-Identifier: Apache-2.0
// MiniCPM-V 2.6: pieces of pictures in one padded batch, a resampler of learned queries, features written over the
// embeddings.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/minicpmv/family.hpp>
#include <vlmest/family/minicpmv/rule.hpp>

#include "new_decoders_support.hpp"
#include "training_support.hpp"

namespace vlmest::minicpmv_family_test {
namespace {

using test::count;
using test::prefill_graph;
using test::prompts;

MiniCpmVFamily family(std::int64_t vision_batch = 16) {
  LlamaConfig text = test::small_llama(3);
  text.hidden = 256;
  return {.vision = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .image_size = 980, .patch_size = 14},
          .resampler = {.queries = 8, .in = 32, .width = 256},
          .language = text,
          .vision_batch = vision_batch};
}
Vlm tiny(std::int64_t vision_batch = 16) {
  Vlm m{.name = "tiny", .type = "minicpmv"};
  m.image_processor = image_processor::MiniCpmV{.scale = 112, .queries = 8};
  m.family = family(vision_batch);
  m.native = {112, 112};
  return m;
}
const image_processor::MiniCpmV rule{.scale = 112, .queries = 8};

TEST(MiniCpmVFamily, PiecesOfOneSizeNeedNoMask) {
  const Graph same = prefill_graph(family(), prompts(rule, {{112, 112}}));
  EXPECT_EQ(count(same, "masked_fill.Scalar", "vpm"), 0);
  const Graph mixed = prefill_graph(family(), prompts(rule, {{112, 112}, {60, 150}}));
  EXPECT_EQ(count(mixed, "masked_fill.Scalar", "vpm"), 1);
}

TEST(MiniCpmVFamily, TheTowerIsCalledInBatchesOfPieces) {
  const auto s = prompts(rule, {{300, 300}});
  EXPECT_EQ(count(prefill_graph(family(), s), "convolution", "vpm"), 1);
  EXPECT_EQ(count(prefill_graph(family(2), s), "convolution", "vpm"), (s.images.front().tiles + 1) / 2);
}

TEST(MiniCpmVFamily, FeaturesAreWrittenOverEachSequence) {
  EXPECT_EQ(count(prefill_graph(family(), prompts(rule, {{112, 112}}, 3)), "scatter_.src", ""), 3);
  EXPECT_EQ(count(prefill_graph(family(), prompts(rule, {})), "scatter_.src", ""), 0);
}

TEST(MiniCpmVFamily, WhatItsCodeRefusesOrDoesOtherwiseIsRefused) {
  Plan p;
  p.text = 16;
  p.image_height = p.image_width = 112;
  EXPECT_NO_THROW(test::training(tiny(), p));
  Plan adapters = p;
  adapters.lora.rank = 4;
  EXPECT_NO_THROW(test::training(tiny(), adapters));
  adapters.checkpointing = Checkpointing::full;
  EXPECT_THROW(test::training(tiny(), adapters), Error);
  // A frozen tower whose inputs collect a gradient was not compared; what trains whole, or collects none, runs.
  Plan frozen = p;
  frozen.checkpointing = Checkpointing::full;
  EXPECT_NO_THROW(test::training(tiny(), frozen));
  frozen.trainable.vision = false;
  EXPECT_THROW(test::training(tiny(), frozen), Error);
  frozen.input_gradients = false;
  EXPECT_NO_THROW(test::training(tiny(), frozen));
  p.images = 0;
  EXPECT_THROW(test::training(tiny(), p), Error) << "a dummy picture runs through the tower";
  p.images = 1;
  Plan flash = p, amp = p, chunk = p;
  flash.attention = AttentionKind::flash;
  amp.amp = true;
  chunk.vision_chunk = 1;
  for (const Plan& other : {flash, amp, chunk}) EXPECT_THROW(test::training(tiny(), other), Error);
}

}  // namespace
}  // namespace vlmest::minicpmv_family_test
