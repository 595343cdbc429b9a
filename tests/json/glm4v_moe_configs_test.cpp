// SPDX-License-Identifier: Apache-2.0
// GLM-4.5V's configs: weights as transformers 5.17 names and shapes them, heads that need not fill the width, the
// layers that have experts.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/glm4v/family.hpp>
#include <vlmest/family/glm4v/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::glm4v_moe_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string model(const std::string& text) { return R"({"model_type": "glm4v_moe", "text_config": {)" + text + "}}"; }

TEST(Glm4vMoeConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("glm4v_moe.json"), 10);
}

TEST(Glm4vMoeConfigs, DefaultsAreOfTheClass) {
  const auto f = get<Glm4vMoeFamily>(read(model(R"("head_dim": 128)")).family);
  EXPECT_EQ(f.language.rotary_dim, 64);
  EXPECT_EQ(f.language.moe.experts.experts, 128);
  EXPECT_EQ(f.language.moe.groups, 1);
  EXPECT_EQ(f.language.dense_layers, 1);
  EXPECT_TRUE(f.language.qkv_bias);
  EXPECT_EQ(f.vision.merger, 13696);
}

TEST(Glm4vMoeConfigs, EitherTieWordEmbeddingsCounts) {
  const auto tied = [](const std::string& keys) {
    return get<Glm4vMoeFamily>(read(R"({"model_type": "glm4v_moe", )" + keys + "}").family).tied;
  };
  EXPECT_FALSE(tied(R"("text_config": {"head_dim": 128})"));
  EXPECT_TRUE(tied(R"("text_config": {"head_dim": 128, "tie_word_embeddings": true})"));
  EXPECT_TRUE(tied(R"("tie_word_embeddings": true, "text_config": {"head_dim": 128})"));
}

/// GLM-4.5V and GLM-4.6V are of one type; their files name the class that takes frames.
TEST(Glm4vMoeConfigs, TheVideoProcessorsFileNamesItsClass) {
  const auto glm46v = [](const char* file) {
    Vlm m = read(model(R"("head_dim": 128)"));
    json::read_processor(nlohmann::json::parse(file), "p", json::ProcessorFile::video, m);
    return get<image_processor::Glm4v>(m.image_processor).glm46v;
  };
  EXPECT_FALSE(glm46v("{}"));
  EXPECT_FALSE(glm46v(R"({"video_processor_type": "Glm4vVideoProcessor"})"));
  EXPECT_TRUE(glm46v(R"({"video_processor_type": "Glm46VVideoProcessor"})"));
}

TEST(Glm4vMoeConfigs, WhatCannotRunIsRefused) {
  const std::string at = "config.json.text_config.";
  // The class's own heads have 42 channels, of which 21 would turn.
  EXPECT_EQ(refused_at(model("")), at + "num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("head_dim": 42)")), at + "partial_rotary_factor");
  EXPECT_EQ(refused_at(model(R"("head_dim": 128, "n_group": 3)")), at + "n_group");
  EXPECT_EQ(refused_at(model(R"("head_dim": 128, "num_experts_per_tok": 129)")), at + "num_experts_per_tok");
  EXPECT_EQ(refused_at(R"({"model_type": "glm4v_moe_text"})"), "config.json.model_type");
}

}  // namespace
}  // namespace vlmest::glm4v_moe_configs_test
