// SPDX-License-Identifier: Apache-2.0
// Kimi-VL's configs: weights as its own code names and shapes them, what cannot run; the processor's settings.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/kimi_vl/family.hpp>
#include <vlmest/family/kimi_vl/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::kimi_vl_configs_test {
namespace {

using test::read;
using test::refused_at;

std::string model(const std::string& vision, const std::string& text = "") {
  return R"({"model_type": "kimi_vl", "vision_config": {)" + vision + R"(}, "text_config": {)" + text + "}}";
}

TEST(KimiVlConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("kimi_vl.json"), 13);
}

TEST(KimiVlConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 7)")), "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 576)")), "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("merge_kernel_size": [2])")), "config.json.vision_config.merge_kernel_size");
  EXPECT_EQ(refused_at(model("", R"("model_type": "qwen2")")), "config.json.text_config.model_type");
}

TEST(KimiVlConfigs, WhereTheCheckpointsCodeWouldDifferFromTransformersIsRefused) {
  EXPECT_EQ(refused_at(model("", R"("moe_layer_freq": 2)")), "config.json.text_config.moe_layer_freq");
  EXPECT_EQ(refused_at(model("", R"("scoring_func": "softmax")")), "config.json.text_config.scoring_func");
  EXPECT_EQ(refused_at(model("", R"("topk_method": "greedy")")), "config.json.text_config.topk_method");
  EXPECT_EQ(refused_at(model("", R"("ep_size": 2)")), "config.json.text_config.ep_size");
  EXPECT_NO_THROW(read(model("", R"("moe_layer_freq": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
                                    "ep_size": 1)")));
}

TEST(KimiVlConfigs, TheProcessorsFileSetsItsLimits) {
  const auto tokens = [](const char* file, ImageSize size) {
    Vlm m = read(model(""));
    EXPECT_TRUE(json::read_processor(nlohmann::json::parse(file), "p", json::ProcessorFile::preprocessor, m).empty());
    return layout(m.image_processor, size).llm_tokens;
  };
  constexpr ImageSize large{1400, 1400}, even{280, 280};
  EXPECT_EQ(layout(read(model("")).image_processor, large).llm_tokens, 32 * 32);
  EXPECT_EQ(tokens(R"({"pad_input": true, "in_token_limit": 4096, "num_pooled_tokens": 1024})", large), 32 * 32);
  EXPECT_EQ(tokens(R"({"pad_input": true, "in_token_limit": 16384})", large), 50 * 50);
  EXPECT_EQ(tokens("{}", even), 100);
  Vlm m = read(model(""));
  const auto fails = [&](const char* file) {
    try {
      json::read_processor(nlohmann::json::parse(file), "p", json::ProcessorFile::preprocessor, m);
    } catch (const Error& e) {
      return e.where;
    }
    return std::string();
  };
  EXPECT_EQ(fails(R"({"merge_kernel_size": [2, 1]})"), "p.merge_kernel_size");
  EXPECT_EQ(fails(R"({"patch_size": 16})"), "p.patch_size");
}

// The class's default cuts pictures to whole patches, of which an odd number of rows does not merge.
TEST(KimiVlConfigs, CutPicturesMergeOnlyWherePatchesDivide) {
  const image_processor::KimiVl cut{.pad_input = false};
  EXPECT_EQ(layout(cut, {285, 291}).llm_tokens, 100);
  EXPECT_THROW(layout(cut, {294, 280}), Error);
  EXPECT_EQ(layout(image_processor::KimiVl{}, {294, 280}).llm_tokens, 110);
}

}  // namespace
}  // namespace vlmest::kimi_vl_configs_test
