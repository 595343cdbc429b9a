// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/family/mistral3/family.hpp>

#include "config_support.hpp"

namespace vlmest::pixtral_configs_test {
namespace {

using test::read;
using test::refused_at;

TEST(PixtralConfig, LlavaCountsNativeSizes) {
  const Vlm v = read(R"({"model_type": "llava", "vision_feature_layer": -1, "vision_config": {"model_type": "pixtral"},
                         "text_config": {"model_type": "mistral"}})");
  EXPECT_EQ(layout(v.image_processor, {512, 768}).llm_tokens, 32 * 48);
  EXPECT_EQ(layout(v.image_processor, {2048, 1024}).resized, (ImageSize{1024, 512}));
}

TEST(PixtralConfig, Mistral3Defaults) {
  const Vlm v = read(R"({"model_type": "mistral3"})");
  const auto& f = get<Mistral3Family>(v.family);
  EXPECT_EQ(f.vision.patch_size, 14);
  EXPECT_EQ(f.vision.image_size, 1540);
  EXPECT_EQ(f.projector.merge, 2);
  EXPECT_FALSE(f.projector.bias);
  EXPECT_TRUE(f.tied);
  EXPECT_EQ(width(f.language), 5120);
  EXPECT_EQ(layout(v.image_processor, {560, 840}).llm_tokens, 20 * 30);
  // A vision_config that is there has its own class's defaults.
  const Vlm w = read(R"({"model_type": "mistral3", "vision_config": {}})");
  EXPECT_EQ(get<Mistral3Family>(w.family).vision.patch_size, 16);
}

TEST(PixtralConfig, RefusesWhatCannotRun) {
  EXPECT_EQ(
      refused_at(
          R"({"model_type": "llava", "vision_feature_select_strategy": "default", "vision_config": {"model_type": "pixtral"}})"),
      "config.json.vision_feature_select_strategy");
  EXPECT_EQ(refused_at(R"({"model_type": "mistral3", "vision_feature_layer": [-1, -2]})"),
            "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(R"({"model_type": "mistral3", "vision_feature_layer": 25})"),
            "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(R"({"model_type": "mistral3", "spatial_merge_size": 0})"), "config.json.spatial_merge_size");
  EXPECT_EQ(refused_at(R"({"model_type": "mistral3", "vision_config": {"model_type": "clip_vision_model"}})"),
            "config.json.vision_config.model_type");
  EXPECT_EQ(
      refused_at(R"({"model_type": "mistral3", "vision_config": {"hidden_size": 1000, "num_attention_heads": 16}})"),
      "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(
      refused_at(R"({"model_type": "mistral3", "vision_config": {"hidden_size": 48, "num_attention_heads": 16}})"),
      "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(R"({"model_type": "mistral3", "vision_config": {"patch_size": 2048}})"),
            "config.json.vision_config.patch_size");
}

}  // namespace
}  // namespace vlmest::pixtral_configs_test
