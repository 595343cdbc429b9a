// SPDX-License-Identifier: Apache-2.0
// dots.ocr: which attention its tower runs, what it reads of pictures' sizes, what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/dots_ocr/family.hpp>
#include <vlmest/family/dots_ocr/rule.hpp>

#include "new_decoders_support.hpp"
#include "training_support.hpp"

namespace vlmest::dots_ocr_family_test {
namespace {

using test::count;
using test::prefill_graph;
using test::prompts;

DotsOcrFamily family(DotsAttention attention = DotsAttention::flash) {
  LlamaConfig text = test::small_llama(3);
  text.hidden = 256;
  return {
      .vision = {.hidden = 64, .intermediate = 48, .layers = 3, .heads = 2, .out_hidden = 256, .attention = attention},
      .language = text};
}
Vlm tiny(DotsAttention attention = DotsAttention::flash) {
  Vlm m{.name = "tiny", .type = "dots_ocr"};
  m.image_processor = image_processor::DotsOcr{};
  m.family = family(attention);
  m.native = {112, 112};
  return m;
}
constexpr image_processor::DotsOcr rule{};
constexpr const char* tower = "vision_tower";

TEST(DotsOcrFamily, ItsTowerAttendsAsItsConfigSays) {
  const auto s = prompts(rule, {{112, 112}, {56, 140}});
  const auto kernels = [&](DotsAttention a) {
    return count(prefill_graph(family(a), s), "_scaled_dot_product_efficient_attention", tower);
  };
  const auto products = [&](DotsAttention a) { return count(prefill_graph(family(a), s), "bmm", tower); };
  EXPECT_EQ(kernels(DotsAttention::sdpa), 3);
  EXPECT_EQ(products(DotsAttention::sdpa), 0);
  EXPECT_EQ(products(DotsAttention::eager), 2 * 3) << "all pictures at once";
  EXPECT_EQ(products(DotsAttention::eager_v2), 2 * 3 * 2) << "one picture after the other";
  EXPECT_EQ(products(DotsAttention::flash), products(DotsAttention::eager)) << "flash-attn is not installed";
}

TEST(DotsOcrFamily, WithoutPicturesItsTowerDoesNotRun) {
  EXPECT_EQ(count(prefill_graph(family(), prompts(rule, {})), "convolution", tower), 0);
  EXPECT_EQ(count(prefill_graph(family(), prompts(rule, {{112, 112}}, 2)), "convolution", tower), 1);
}

TEST(DotsOcrFamily, WhatNoRunWasComparedWithIsRefused) {
  Plan p;
  p.text = 16;
  p.image_height = p.image_width = 112;
  for (const DotsAttention a : {DotsAttention::eager, DotsAttention::eager_v2, DotsAttention::sdpa})
    EXPECT_NO_THROW(test::training(tiny(a), p));
  Plan flash = p, amp = p, wide = p, chunk = p;
  chunk.vision_chunk = 1;
  flash.attention = AttentionKind::flash;
  amp.amp = true;
  wide.dtype = DType::fp32;
  for (const Plan& other : {flash, amp, wide, chunk}) EXPECT_THROW(test::training(tiny(), other), Error);
  wide.images = 0;
  EXPECT_NO_THROW(test::training(tiny(), wide)) << "text alone goes past the tower";
}

}  // namespace
}  // namespace vlmest::dots_ocr_family_test
