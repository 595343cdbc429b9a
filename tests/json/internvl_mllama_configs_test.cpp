// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/mllama/family.hpp>

#include "config_support.hpp"

namespace vlmest::internvl_mllama_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

// nn.Parameter counts of the classes of transformers 5.17, built on the meta device.
TEST(InternVlConfigs, CountWhatTransformersBuilds) {
  EXPECT_EQ(parameters(R"({"model_type": "internvl", "tie_word_embeddings": false,
    "vision_config": {"hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45, "num_attention_heads": 25,
      "image_size": [448, 448], "patch_size": [14, 14], "use_qk_norm": true, "norm_type": "rms_norm"},
    "text_config": {"hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 40,
      "num_key_value_heads": 8, "vocab_size": 151674}})"),
            38388164992);
  EXPECT_EQ(
      parameters(R"({"model_type": "internvl", "tie_word_embeddings": false, "vision_config": {"attention_bias": true},
    "text_config": {"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936}})"),
      1060897792);
}

TEST(InternVlConfigs, AnAbsentKeyTies) {
  const std::string text =
      R"("text_config": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "vocab_size": 1000}})";
  EXPECT_EQ(parameters(R"({"model_type": "internvl", "tie_word_embeddings": false, )" + text) -
                parameters(R"({"model_type": "internvl", )" + text),
            1000 * 64);
}

TEST(InternVlConfigs, RefuseWhatCannotRun) {
  auto with = [](const std::string& keys) { return refused_at(R"({"model_type": "internvl", )" + keys + "}"); };
  EXPECT_EQ(with(R"("downsample_ratio": 0.4)"), "config.json.downsample_ratio");
  EXPECT_EQ(with(R"("downsample_ratio": 0)"), "config.json.downsample_ratio");
  EXPECT_EQ(with(R"("vision_config": {"image_size": 434})"), "config.json.downsample_ratio");
  EXPECT_EQ(with(R"("vision_feature_select_strategy": "full")"), "config.json.vision_feature_select_strategy");
  EXPECT_EQ(with(R"("vision_feature_layer": [-1])"), "config.json.vision_feature_layer");
  EXPECT_EQ(with(R"("vision_feature_layer": 25)"), "config.json.vision_feature_layer");
  EXPECT_EQ(with(R"("vision_config": {"norm_type": "batch_norm"})"), "config.json.vision_config.norm_type");
  EXPECT_EQ(with(R"("vision_config": {"num_attention_heads": 7})"), "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(with(R"("vision_config": {"image_size": [448, 224]})"), "config.json.vision_config.image_size");
  EXPECT_EQ(with(R"("vision_config": {"use_qk_norm": "yes"})"), "config.json.vision_config.use_qk_norm");
}

TEST(MllamaConfigs, CountWhatTransformersBuilds) {
  EXPECT_EQ(parameters(R"({"model_type": "mllama", "vision_config": {"image_size": 560}})"), 10670220835);
  EXPECT_EQ(
      parameters(R"({"model_type": "mllama", "vision_config": {"image_size": 560}, "text_config": {"hidden_size": 8192,
    "intermediate_size": 28672, "num_hidden_layers": 100, "num_attention_heads": 64,
    "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38, 43, 48, 53, 58, 63, 68, 73, 78, 83, 88, 93, 98]}})"),
      88593355323);
}

TEST(MllamaConfigs, TyingIsIgnored) {
  EXPECT_EQ(parameters(R"({"model_type": "mllama", "tie_word_embeddings": true, "vision_config": {"image_size": 560},
    "text_config": {"tie_word_embeddings": true}})"),
            10670220835);
}

TEST(MllamaConfigs, CrossAttentionBeyondTheLastLayerIsWithoutEffect) {
  const auto f =
      get<MllamaFamily>(read(R"({"model_type": "mllama", "text_config": {"num_hidden_layers": 10}})").family);
  EXPECT_EQ(std::count(f.language.cross.begin(), f.language.cross.end(), true), 2);
  EXPECT_TRUE(f.language.cross[3] && f.language.cross[8]);
}

TEST(MllamaConfigs, RefuseWhatCannotRun) {
  auto vision = [](const std::string& keys) {
    return refused_at(R"({"model_type": "mllama", "vision_config": {)" + keys + "}}");
  };
  EXPECT_EQ(vision(""), "accepted");
  EXPECT_EQ(vision(R"("attention_heads": 7)"), "config.json.vision_config.attention_heads");
  EXPECT_EQ(vision(R"("max_num_tiles": 6)"), "config.json.vision_config.max_num_tiles");
  EXPECT_EQ(vision(R"("max_num_tiles": 6, "supported_aspect_ratios": [[1, 1], [2, 3]])"), "accepted");
  EXPECT_EQ(vision(R"("supported_aspect_ratios": 8)"), "config.json.vision_config.supported_aspect_ratios");
  EXPECT_EQ(vision(R"("intermediate_layers_indices": [3, 32], "vision_output_dim": 3840)"),
            "config.json.vision_config.intermediate_layers_indices");
  EXPECT_EQ(vision(R"("vision_output_dim": 7681)"), "config.json.vision_config.vision_output_dim");
  EXPECT_EQ(vision(R"("image_size": 7)"), "config.json.vision_config.patch_size");
  EXPECT_EQ(refused_at(R"({"model_type": "mllama", "text_config": {"num_key_value_heads": 5}})"),
            "config.json.text_config.num_key_value_heads");
}

}  // namespace
}  // namespace vlmest::internvl_mllama_configs_test
