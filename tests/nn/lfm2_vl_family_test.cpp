// SPDX-License-Identifier: Apache-2.0
// LFM2-VL: convolutions' states beside keys and values, rows of padded patches, a projector for each row.
#include <gtest/gtest.h>

#include <vlmest/family/lfm2_vl/family.hpp>
#include <vlmest/family/lfm2_vl/rule.hpp>

#include "training_support.hpp"

namespace vlmest::lfm2_vl_family_test {
namespace {

using test::count;
using test::inference;

Lfm2Config tiny_text() {
  Lfm2Config t;
  t.layers = {.vocab = 96,
              .hidden = 64,
              .intermediate = 80,
              .layers = 5,
              .heads = 4,
              .kv_heads = 2,
              .head_dim = 16,
              .qk_norm = true};
  t.full = {false, false, true, false, true};
  return t;
}
Vlm tiny(bool head = true) {
  Lfm2VlFamily f{.vision = {.hidden = 32, .intermediate = 48, .layers = 2, .heads = 2, .positions = 16, .head = head},
                 .projector = {.in = 32, .inner = 40, .out = 64},
                 .language = tiny_text()};
  Vlm v{.name = "tiny", .type = "lfm2_vl", .family = f};
  v.image_processor = image_processor::Lfm2Vl{};
  v.native = {512, 512};
  return v;
}
Plan plan_of(std::int64_t tokens, std::int64_t images = 0) { return {.batch = 2, .images = images, .text = tokens}; }

InferenceCaches caches(const Plan& plan, std::int64_t steps) {
  Builder b;
  Context c{b, plan, stack_of(plan)};
  const Vlm v = tiny();
  const Sequences s = make_sequences(v, plan);
  return build_inference(c, v, s, s.seq + steps);
}
Bytes sum(const std::vector<CacheEntry>& entries, Bytes CacheEntry::*part) {
  Bytes r{};
  for (const auto& e : entries) r += e.*part;
  return r;
}

// Three layers keep 64 channels of 3 tokens, two keys and values of two heads of 16, of two sequences in bf16.
constexpr std::int64_t states = 3 * 2 * 64 * 3 * 2, token = 2 * 2 * 2 * 2 * 16 * 2;

TEST(Lfm2VlFamily, StatesHaveOneSizeAndKeysGrow) {
  for (const std::int64_t tokens : {1, 2, 3, 40}) {
    const InferenceCaches c = caches(plan_of(tokens), 5);
    ASSERT_EQ(c.prefill.size(), 5u);
    EXPECT_EQ(sum(c.prefill, &CacheEntry::states), Bytes(states)) << tokens;
    EXPECT_EQ(sum(c.decode, &CacheEntry::states), Bytes(states)) << tokens;
    EXPECT_EQ(sum(c.prefill, &CacheEntry::bytes), Bytes(states + tokens * token)) << tokens;
    EXPECT_EQ(sum(c.decode, &CacheEntry::bytes), Bytes(states + (tokens + 5) * token)) << tokens;
  }
}

TEST(Lfm2VlFamily, PromptsShorterThanTheFilterAreFilledUp) {
  EXPECT_EQ(count(inference(tiny(), plan_of(2)), 0, "constant_pad_nd", "language_model"), 3);
  EXPECT_EQ(count(inference(tiny(), plan_of(3)), 0, "constant_pad_nd", "language_model"), 0);
}

TEST(Lfm2VlFamily, OnlyRowsWithPaddingHaveAMask) {
  const auto masks = [](ImageSize size) {
    const Vlm v = tiny();
    return count(inference(v, {}, test::prompts(v.image_processor, {size})), 0, "bitwise_and.Tensor", "vision_tower");
  };
  EXPECT_EQ(masks({512, 512}), 0);
  EXPECT_EQ(masks({512, 384}), 4) << "two for the layers, two for the head";
}

TEST(Lfm2VlFamily, EachRowIsProjectedByItself) {
  const Vlm v = tiny(false);
  const Graph g = inference(v, {}, test::prompts(v.image_processor, {{512, 384}, {1024, 1024}}));
  EXPECT_EQ(count(g, 0, "addmm", "multi_modal_projector.linear_1"), 1 + 5) << "a picture, four tiles and a thumbnail";
  EXPECT_EQ(count(g, 0, "_upsample_bilinear2d_aa", "vision_tower"), 6);
}

TEST(Lfm2VlFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
    Plan plan = plan_of(12, 1);
    plan.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), plan, true)), test::rows(test::training(tiny(), plan, false)));
  }
}

TEST(Lfm2VlFamily, ChunksOfTheTowerAreJoined) {
  Plan plan = plan_of(12, 2);
  EXPECT_EQ(count(inference(tiny(), plan), "native_layer_norm", "vision_tower.post_layernorm"), 1);
  plan.vision_chunk = 1;
  EXPECT_EQ(count(inference(tiny(), plan), "native_layer_norm", "vision_tower.post_layernorm"), 4);
}

TEST(Lfm2VlFamily, KernelsThatFuseAConvolutionAreRefused) {
  Plan plan = plan_of(8);
  plan.runtime = runtime_id("fused");
  EXPECT_THROW(inference(tiny(), plan), Error);
}

}  // namespace
}  // namespace vlmest::lfm2_vl_family_test
