// SPDX-License-Identifier: Apache-2.0
// Qwen3.5's layers of linear attention: what they keep of a sequence, and what runs for how many tokens.
#include <gtest/gtest.h>

#include <vlmest/family/qwen3_5/family.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::qwen3_5_family_test {
namespace {

using test::count;
using test::inference;

Qwen35TextConfig tiny_text(std::int64_t experts = 0) {
  Qwen35TextConfig t;
  t.layers = {.vocab = 100,
              .hidden = 64,
              .intermediate = 96,
              .layers = 4,
              .heads = 4,
              .kv_heads = 2,
              .head_dim = 32,
              .qk_norm = true,
              .rotary_dim = 16};
  t.linear = {.hidden = 64, .key_heads = 2, .value_heads = 6, .key_dim = 16, .value_dim = 8, .taps = 3};
  t.full = {false, false, true, false};
  t.sections = {3, 3, 2};
  if (experts > 0) t.moe = {.hidden = 64, .inner = 24, .experts = experts, .top_k = 2, .shared = 32};
  return t;
}
Vlm tiny_lm(std::int64_t experts = 0) {
  Qwen35LmFamily f;
  f.language = tiny_text(experts);
  Vlm v{.name = "tiny", .type = "qwen3_5_text", .family = f};
  v.image_processor = image_processor::TextOnly{};
  return v;
}
Vlm tiny_vlm() {
  Qwen35Family f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 2, .heads = 2, .out_hidden = 64, .positions = 49};
  f.vision.deepstack.clear();
  f.language = tiny_text();
  Vlm v{.name = "tiny", .type = "qwen3_5", .family = f};
  v.image_processor = image_processor::Qwen3Vl{};
  v.native = {512, 512};
  return v;
}
Plan text_plan(std::int64_t tokens, std::int64_t batch = 2) { return {.batch = batch, .images = 0, .text = tokens}; }

InferenceCaches caches(const Vlm& v, const Plan& plan, std::int64_t steps) {
  Builder b;
  Context c{b, plan, stack_of(plan)};
  const Sequences s = make_sequences(v, plan);
  return build_inference(c, v, s, s.seq + steps);
}
Bytes sum(const std::vector<CacheEntry>& entries, Bytes CacheEntry::*part) {
  Bytes r{};
  for (const auto& e : entries) r += e.*part;
  return r;
}

// Three linear layers: [2, 6, 16, 8] in fp32, and 2 * 2 * 16 + 6 * 8 channels of 3 tokens in bf16. One full layer:
// keys and values of two heads of 32.
constexpr std::int64_t states = 3 * (2 * 6 * 16 * 8 * 4 + 2 * 112 * 3 * 2), token = 2 * 2 * 2 * 32 * 2;

TEST(Qwen35Family, StatesHaveOneSizeAndKeysGrow) {
  for (const std::int64_t tokens : {2, 40, 64, 200}) {
    const InferenceCaches c = caches(tiny_lm(), text_plan(tokens), 5);
    ASSERT_EQ(c.prefill.size(), 4u);
    EXPECT_EQ(sum(c.prefill, &CacheEntry::states), Bytes(states)) << tokens;
    EXPECT_EQ(sum(c.decode, &CacheEntry::states), Bytes(states)) << tokens;
    EXPECT_EQ(sum(c.prefill, &CacheEntry::bytes), Bytes(states + tokens * token)) << tokens;
    EXPECT_EQ(sum(c.decode, &CacheEntry::bytes), Bytes(states + (tokens + 5) * token)) << tokens;
  }
}

TEST(Qwen35Family, StatesStayInFp32WhateverTheModelIsIn) {
  Plan plan = text_plan(40);
  plan.dtype = DType::fp32;
  EXPECT_EQ(sum(caches(tiny_lm(), plan, 1).prefill, &CacheEntry::states), Bytes(states + 3 * 2 * 112 * 3 * 2));
  plan.dtype = DType::bf16;
  plan.kv.dtype = DType::fp8;
  const InferenceCaches narrow = caches(tiny_lm(), plan, 1);
  EXPECT_EQ(sum(narrow.prefill, &CacheEntry::states), Bytes(states)) << "the type of keys and values is not theirs";
}

TEST(Qwen35Family, APromptRunsChunkByChunk) {
  const auto products = [](std::int64_t tokens) {
    return count(inference(tiny_lm(), text_plan(tokens)), 0, "bmm", "layers.0.linear_attn");
  };
  EXPECT_EQ(products(64), 2 + 4);
  EXPECT_EQ(products(65), 2 + 2 * 4);
  EXPECT_EQ(products(640), 2 + 10 * 4);
  EXPECT_EQ(count(inference(tiny_lm(), text_plan(640)), 1, "bmm", "linear_attn"), 0) << "a step has no products";
}

TEST(Qwen35Family, HeadsOfKeysAreRepeatedForThoseOfValues) {
  EXPECT_EQ(count(inference(tiny_lm(), text_plan(40)), 0, "clone", "layers.0.linear_attn"), 2);
  Qwen35LmFamily f;
  f.language = tiny_text();
  f.language.linear.value_heads = 2;
  Vlm equal = tiny_lm();
  equal.family = f;
  EXPECT_EQ(count(inference(equal, text_plan(40)), 0, "clone", "layers.0.linear_attn"), 0);
}

TEST(Qwen35Family, PromptsShorterThanTheFilterAreFilledUp) {
  const Graph g = inference(tiny_lm(), text_plan(2));
  EXPECT_EQ(count(g, 0, "constant_pad_nd", "layers.0.linear_attn"), 5 + 1);
  EXPECT_EQ(count(inference(tiny_lm(), text_plan(3)), 0, "constant_pad_nd", "layers.0.linear_attn"), 5);
}

TEST(Qwen35Family, PaddedSequencesAreMaskedBeforeTheStates) {
  const Vlm v = tiny_lm();
  Plan plan = text_plan(40);
  Sequences s = make_sequences(v, plan);
  s.padding = {0, 7};
  const Graph padded = inference(v, plan, s), even = inference(v, plan);
  EXPECT_EQ(count(padded, 0, "mul.Tensor", "layers.0.linear_attn"),
            1 + count(even, 0, "mul.Tensor", "layers.0.linear_attn"));
  EXPECT_EQ(count(padded, 1, "mul.Tensor", "layers.0.linear_attn"),
            count(even, 1, "mul.Tensor", "layers.0.linear_attn"));
}

TEST(Qwen35Family, EveryLayerRoutesWhereThereAreExperts) {
  const Graph g = inference(tiny_lm(6), text_plan(40));
  for (const char* layer : {"layers.0", "layers.1", "layers.2", "layers.3"})
    EXPECT_EQ(count(g, 0, "topk", layer), 1) << layer;
}

TEST(Qwen35Family, TextAloneRunsNoTower) {
  const Vlm v = tiny_vlm();
  EXPECT_EQ(count(inference(v, text_plan(40)), "native_layer_norm"), 0);
  const Plan images{.batch = 2, .images = 2, .image_height = 256, .image_width = 320, .text = 9};
  const Graph g = inference(v, images);
  EXPECT_EQ(count(g, 0, "native_layer_norm", "visual"), 2 * 2 + 1);
  EXPECT_EQ(count(g, 1, "native_layer_norm", "visual"), 0);
}

TEST(Qwen35Family, TheFusedProfileIsRefused) {
  Plan plan = text_plan(40);
  plan.runtime = runtime_id("fused");
  try {
    inference(tiny_lm(), plan);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "plan.runtime");
    EXPECT_FALSE(e.hint.empty());
  }
}

}  // namespace
}  // namespace vlmest::qwen3_5_family_test
