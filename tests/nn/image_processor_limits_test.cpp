// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/nn/image_processor/processor.hpp>

#include "image_processor_rules.hpp"

namespace vlmest::image_processor_limits_test {
namespace {

using namespace test_rules;

TEST(TokenLimits, EveryRuleKeepsItsIdentities) {
  for (const auto& rule : all_rules())
    for (std::int64_t h = 30; h < 3000; h += 97)
      for (std::int64_t w = 30; w < 3000; w += 113) {
        const auto l = layout(rule, {h, w});
        ASSERT_GT(l.llm_tokens, 0);
        ASSERT_GE(l.tiles, l.tile_grid.count());
        ASSERT_GE(l.tower_tokens, l.patches.count());
        ASSERT_LE(l.tower_tokens, l.patches.count() + 1);
        if (get_if<Gemma3>(&rule) || get_if<MiniCpm>(&rule)) continue;  // crops and slices are resized one by one
        const auto patch = l.resized.height / l.tile_grid.rows / l.patches.rows;
        ASSERT_TRUE(patch == 14 || patch == 16);
        ASSERT_EQ(l.resized.width / l.tile_grid.cols / l.patches.cols, patch);
      }
}

TEST(TokenLimits, Bounds) {
  for (std::int64_t h = 40; h < 5000; h += 131)
    for (std::int64_t w = 40; w < 5000; w += 171) {
      const ImageSize s{h, w};
      EXPECT_LE(layout(InternVl{}, s).tile_grid.count(), 12);
      EXPECT_LE(layout(InternVl{.max_tiles = 5}, s).tiles, 6);
      EXPECT_GE(layout(InternVl{.min_tiles = 3}, s).tile_grid.count(), 3);
      EXPECT_LE(layout(Mllama{}, s).tile_grid.count(), 4);
      EXPECT_LE(layout(idefics3, s).tiles, 17);
      EXPECT_LE(layout(LlavaNext{}, s).tiles, 5);
      EXPECT_LE(layout(gemma3_scan, s).tiles, 5);
      const auto p = layout(Pixtral{}, s).resized;
      EXPECT_LE(std::max(p.height, p.width), 1024);
      const auto q = layout(qwen2_vl_small, s).resized;
      EXPECT_TRUE(q.height % 28 == 0 && q.width % 28 == 0);
      EXPECT_GE(q.height * q.width, 3136);
      if (std::min(q.height, q.width) > 28) {
        EXPECT_LE(q.height * q.width, 28 * 28 * 1280);
      }
    }
}

// More pixels never cost fewer tokens as long as no limit shrinks the picture.
TEST(TokenLimits, GrowWithThePicture) {
  const std::vector<ImageProcessor> rules{Qwen2Vl{.budget = {1, 1 << 30}}, Qwen3Vl{.budget = {1, 1 << 30}},
                                          Glm4v{.budget = {1, 1 << 30}}, Pixtral{.longest_edge = 4000},
                                          Mistral3{.longest_edge = 4000}};
  for (const auto& rule : rules)
    for (std::int64_t side = 40; side < 2000; side += 7) {
      const auto n = layout(rule, {side, 333}).llm_tokens;
      EXPECT_LE(n, layout(rule, {side + 7, 333}).llm_tokens);
      EXPECT_LE(n, layout(rule, {side, 340}).llm_tokens);
    }
}

TEST(TokenLimits, BadSizesAreRefused) {
  constexpr std::int64_t huge = std::int64_t{1} << 20;
  for (const auto& rule : all_rules())
    for (const ImageSize s : {ImageSize{0, 480}, {480, 0}, {-1, 480}, {480, -640}, {huge + 1, 1}, {480, INT64_MAX}}) {
      try {
        layout(rule, s);
        ADD_FAILURE() << "rule of " << limit_line(rule) << " took " << s.height << "x" << s.width;
      } catch (const Error& e) {
        EXPECT_EQ(e.where, "image size");
        EXPECT_FALSE(e.hint.empty());
      }
    }
  EXPECT_EQ(layout(Qwen2Vl{}, {56, 200 * 56}).patches.count() % 4, 0);
  EXPECT_THROW(layout(Qwen2Vl{}, {56, 200 * 56 + 1}), Error);
  EXPECT_THROW(layout(Pixtral{}, {1, 1025}), Error);
  EXPECT_NO_THROW(layout(Pixtral{}, {1, 1024}));
  for (const auto& rule :
       {ImageProcessor{InternVl{}}, ImageProcessor{Mllama{}}, ImageProcessor{idefics3}, ImageProcessor{LlavaNext{}}})
    EXPECT_NO_THROW(layout(rule, {huge, huge}));
}

TEST(TokenLimits, BadParametersAreRefused) {
  const ImageSize s{480, 640};
  EXPECT_THROW(layout(Llava{.patch_size = 0}, s), Error);
  EXPECT_THROW(layout(Llava{.image_size = 13}, s), Error);
  EXPECT_THROW(layout(LlavaNext{.pinpoints = {}}, s), Error);
  EXPECT_THROW(layout(LlavaNext{.pinpoints = {{336, 0}}}, s), Error);
  EXPECT_THROW(layout(LlavaNext{.pinpoints = {{336, 400}}}, s), Error);
  EXPECT_THROW(layout(LlavaNext{.class_token = false}, s), Error);
  EXPECT_THROW(layout(LlavaOnevision{.max_tiles = 0}, s), Error);
  EXPECT_THROW(layout(LlavaOnevision{.max_tiles = 1, .pinpoints = {{384, 384 * 99}}}, {1, 9000}), Error);
  EXPECT_THROW(layout(Qwen2Vl{.budget = {5000, 4000}}, s), Error);
  EXPECT_THROW(layout(Qwen2Vl{.patch_size = -14}, s), Error);
  EXPECT_THROW(layout(Qwen2Vl{.merge = 0}, s), Error);
  EXPECT_THROW(layout(Glm4v{.temporal_patch_size = 0}, s), Error);
  EXPECT_THROW(layout(InternVl{.merge = 3}, s), Error);
  EXPECT_THROW(layout(InternVl{.max_tiles = 0}, s), Error);
  EXPECT_THROW(layout(InternVl{.max_tiles = 1 << 30}, s), Error);
  EXPECT_THROW(layout(Idefics3{.tile_size = 20, .longest_edge = 4000}, s), Error);
  EXPECT_THROW(layout(Mllama{.max_tiles = 0}, s), Error);
  EXPECT_THROW(layout(Mistral3{.longest_edge = 0}, s), Error);
  EXPECT_THROW(layout(Blip2{.query_tokens = 0}, s), Error);
  EXPECT_THROW(layout(Gemma3{.pan_and_scan = true, .min_crop_size = 0}, s), Error);
}

}  // namespace
}  // namespace vlmest::image_processor_limits_test
