// SPDX-License-Identifier: Apache-2.0
// dots.ocr's config and processor's file, through its row alone: weights, what is refused, what sets its pictures.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/dots_ocr/read.hpp>
#include <vlmest/json/hf/read.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::dots_ocr_configs_test {
namespace {

constexpr auto rows = json::family_rows<family::DotsOcr>;

Vlm own(const std::string& text) { return json::hf::read(nlohmann::json::parse(text), "config.json", rows); }
std::string model(const std::string& vision = "") {
  return R"({"model_type": "dots_ocr", "hidden_size": 256, "intermediate_size": 300, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 500,
             "vision_config": {"embed_dim": 48, "hidden_size": 256, "intermediate_size": 60, "num_hidden_layers": 2,
                               "num_attention_heads": 4)" +
         vision + "}}";
}
std::string refused(const std::string& text) {
  try {
    own(text);
  } catch (const Error& e) {
    return e.where;
  }
  return "";
}

TEST(DotsOcrConfigs, WeightsHaveTheNamesAndShapesOfItsCode) {
  EXPECT_EQ(test::expect_recorded_parameters("dots_ocr.json"), 17);
}

TEST(DotsOcrConfigs, KeysOfTheTowerMakeAndLeaveOutWeights) {
  const auto w = test::named_weights(own(model(R"(, "use_bias": true, "num_channels": 4, "patch_size": 8)")));
  const auto at = [&](const std::string& name) { return w.count(name) ? w.at(name) : std::string("missing"); };
  EXPECT_EQ(at("vision_tower.patch_embed.patchifier.proj.weight"), to_string(Shape{48, 4, 8, 8}));
  EXPECT_EQ(at("vision_tower.patch_embed.patchifier.proj.bias"), to_string(Shape{48}));
  EXPECT_EQ(at("vision_tower.blocks.1.attn.qkv.bias"), to_string(Shape{144}));
  EXPECT_EQ(at("vision_tower.blocks.0.mlp.fc3.weight"), to_string(Shape{60, 48}));
  EXPECT_EQ(at("vision_tower.post_trunk_norm.weight"), to_string(Shape{48}));
  EXPECT_EQ(at("vision_tower.merger.mlp.2.weight"), to_string(Shape{256, 192}));
  EXPECT_EQ(at("model.layers.1.self_attn.q_proj.bias"), to_string(Shape{256}));
  EXPECT_EQ(at("lm_head.weight"), to_string(Shape{500, 256}));
  const auto bare = test::named_weights(own(model(R"(, "post_norm": false)")));
  EXPECT_EQ(bare.count("vision_tower.post_trunk_norm.weight"), 0u);
  EXPECT_EQ(bare.count("vision_tower.blocks.1.attn.qkv.bias"), 0u);
}

TEST(DotsOcrConfigs, WhatCannotRunIsRefused) {
  const std::string vision = "config.json.vision_config.";
  EXPECT_EQ(refused(model(R"(, "attn_implementation": "ascend_fa")")), vision + "attn_implementation");
  EXPECT_EQ(refused(model(R"(, "num_attention_heads": 8)")), vision + "num_attention_heads") << "heads of 6 channels";
  EXPECT_EQ(refused(R"({"model_type": "dots_ocr", "hidden_size": 256, "num_attention_heads": 4,
                        "num_key_value_heads": 2})"),
            vision + "hidden_size")
      << "the merger ends in 1536 channels";
}

TEST(DotsOcrConfigs, EachAttentionOfTheTowerIsRead) {
  for (const DotsAttention kind :
       {DotsAttention::eager, DotsAttention::eager_v2, DotsAttention::sdpa, DotsAttention::flash}) {
    const Vlm m = own(model(R"(, "attn_implementation": ")" + std::string(name(kind)) + '"'));
    EXPECT_EQ(get<DotsOcrFamily>(m.family).vision.attention, kind);
  }
}

TEST(DotsOcrConfigs, PicturesKeepTheirShapeInsideTheReleasedBudget) {
  const Vlm m = own(model());
  EXPECT_EQ(layout(m.image_processor, {448, 448}).llm_tokens, 256);
  EXPECT_EQ(layout(m.image_processor, {2200, 1700}).patches.count(), 158 * 122);
  EXPECT_LE(layout(m.image_processor, {6000, 6000}).patches.count(), 11289600 / 196);
  EXPECT_EQ(layout(m.image_processor, {20, 20}).llm_tokens, 4);
}

}  // namespace
}  // namespace vlmest::dots_ocr_configs_test
