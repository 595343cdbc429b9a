// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/llava_onevision/rule.hpp>

#include "config_support.hpp"

namespace vlmest::llava_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

// nn.Parameter counts of the classes of transformers 5.17, built on the meta device.
TEST(LlavaConfigs, DefaultsCountWhatTransformersBuilds) {
  EXPECT_EQ(parameters(read(R"({"model_type": "llava", "text_config": {"vocab_size": 32064}})")), 7063427072);
  EXPECT_EQ(parameters(read(R"({"model_type": "llava_next", "text_config": {"vocab_size": 32064}})")), 7063431168);
  EXPECT_EQ(parameters(
                read(R"({"model_type": "llava_next", "text_config": {"model_type": "mistral", "vocab_size": 32064}})")),
            7566747648);
  EXPECT_EQ(parameters(read(
                R"({"model_type": "llava_onevision", "text_config": {"hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152000}})")),
            8029890080);
}

TEST(LlavaConfigs, TheTextConfigTiesEverybodyButLlavaNext) {
  for (const char* type : {"llava", "llava_next", "llava_onevision"}) {
    const std::string head = std::string(R"({"model_type": ")") + type + R"(", )";
    const std::string text = R"("text_config": {"model_type": "llama", "vocab_size": 32064, "tie_word_embeddings": )";
    const auto loose = parameters(read((head + text + "false}}").c_str())),
               tied = parameters(read((head + text + "true}}").c_str()));
    EXPECT_EQ(loose - tied, std::string_view(type) == "llava_next" ? 0 : 32064 * 4096) << type;
  }
}

TEST(LlavaConfigs, SeveralFeatureLayersWidenTheProjector) {
  const auto one = parameters(read(R"({"model_type": "llava_next"})"));
  EXPECT_EQ(parameters(read(R"({"model_type": "llava_next", "vision_feature_layer": [-2]})")), one);
  EXPECT_EQ(parameters(read(R"({"model_type": "llava_next", "vision_feature_layer": [0, 5, -2]})")),
            one + 2 * 1024 * 4096);
}

TEST(LlavaConfigs, AnAbsentSiglipHeadKeyMeansAHead) {
  auto count = [](const char* key) {
    return parameters(read(
        (std::string(R"({"model_type": "llava_onevision", "vision_config": {"hidden_size": 1152, "num_hidden_layers": 2,
        "intermediate_size": 4304, "num_attention_heads": 16, "patch_size": 14, "image_size": 384)") +
         key + "}}")
            .c_str()));
  };
  const std::int64_t w = 1152, i = 4304;
  const std::int64_t head = w + (3 * w + 1) * w + 2 * w + (w + 1) * w + 2 * w + (w + 1) * i + (i + 1) * w;
  EXPECT_EQ(count(""), count(R"(, "vision_use_head": false)") + head);
  EXPECT_EQ(count(R"(, "vision_use_head": true)"), count(""));
  EXPECT_EQ(count(R"(, "vision_use_head": null)"), count(R"(, "vision_use_head": false)"));
}

TEST(LlavaConfigs, AspectRatioIsReadAsTheModelStripsIt) {
  auto tiles = [](const char* s) {
    return get<image_processor::LlavaOnevision>(
               read((std::string(R"({"model_type": "llava_onevision", "vision_aspect_ratio": ")") + s + "\"}").c_str())
                   .image_processor)
        .max_tiles;
  };
  EXPECT_EQ(tiles("anyres_max_9"), 9);
  EXPECT_EQ(tiles("anyres_max_16"), 16);
  EXPECT_EQ(tiles("4"), 4);
}

TEST(LlavaConfigs, BadValuesNameTheirKey) {
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "vision_feature_layer": 25})"),
            "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "vision_feature_layer": [-26]})"),
            "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "vision_feature_layer": []})"),
            "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "vision_feature_select_strategy": "full"})"),
            "config.json.vision_feature_select_strategy");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_onevision", "vision_feature_select_strategy": "default"})"),
            "config.json.vision_feature_select_strategy");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "image_grid_pinpoints": []})"),
            "config.json.image_grid_pinpoints");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "image_grid_pinpoints": [[336]]})"),
            "config.json.image_grid_pinpoints");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "image_grid_pinpoints": [[336, 0]]})"),
            "config.json.image_grid_pinpoints");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next", "image_grid_pinpoints": [[336, 400]]})"),
            "config.json.image_grid_pinpoints");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_onevision", "vision_aspect_ratio": "pad"})"),
            "config.json.vision_aspect_ratio");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_onevision", "vision_aspect_ratio": "anyres_max_0"})"),
            "config.json.vision_aspect_ratio");
  EXPECT_EQ(
      refused_at(
          R"({"model_type": "llava_onevision", "text_config": {"num_attention_heads": 14, "num_key_value_heads": 4}})"),
      "config.json.text_config.num_key_value_heads");
}

}  // namespace
}  // namespace vlmest::llava_configs_test
