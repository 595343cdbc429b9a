// SPDX-License-Identifier: Apache-2.0
// GLM-OCR's and GLM-4.6V's configs: weights as transformers 5.17 names and shapes them, which parts are read, which
// tie_word_embeddings counts.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/glm4v/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::glm_ocr_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string ocr(const std::string& text, const std::string& vision = "") {
  return R"({"model_type": "glm_ocr", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}

TEST(GlmOcrConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("glm_ocr.json"), 4);
}

TEST(GlmOcrConfigs, HeadsNeedNotFillTheWidth) {
  const auto f = get<Glm4vFamily>(read(ocr(R"("hidden_size": 1536, "head_dim": 128)")).family);
  EXPECT_EQ(f.language.head_dim, 128);
  EXPECT_EQ(f.language.rotary_dim, 128);
  EXPECT_FALSE(f.language.qkv_bias);
  EXPECT_TRUE(f.vision.qk_norm);
  EXPECT_FALSE(f.vision.position_table);
  EXPECT_EQ(f.vision.merger, 3 * 1536);
}

TEST(GlmOcrConfigs, ProcessorIsTheReleasedModels) {
  const auto tokens = [](const std::string& text) {
    const Vlm m = read(text);
    return layout(m.image_processor, ImageSize{4000, 3000}).llm_tokens;
  };
  EXPECT_EQ(tokens(ocr(R"("hidden_size": 1536)")), (2520 / 28) * (1876 / 28));
  EXPECT_EQ(tokens(R"({"model_type": "glm46v"})"), (2800 / 28) * (2100 / 28));
}

TEST(GlmOcrConfigs, BadValuesNameTheirKey) {
  EXPECT_EQ(refused_at(ocr("", R"("out_hidden_size": 2048)")), "config.json.vision_config.out_hidden_size");
  // The two classes' own defaults do not fit each other.
  EXPECT_EQ(refused_at(R"({"model_type": "glm_ocr"})"), "config.json.vision_config.out_hidden_size");
  EXPECT_EQ(refused_at(ocr("", R"("num_heads": 7)")), "config.json.vision_config.num_heads");
  EXPECT_EQ(refused_at(ocr(R"("num_key_value_heads": 3)")), "config.json.text_config.num_key_value_heads");
}

// GLM-4.6V's large model has experts; its tower is the same under another name.
TEST(Glm46vConfigs, PartsNameTheirTypes) {
  const std::string whole = R"({"model_type": "glm46v", )";
  EXPECT_EQ(parameters(whole + R"("text_config": {"model_type": "glm4v_text"}})"),
            parameters(R"({"model_type": "glm4v"})"));
  const std::string heads = R"("head_dim": 128)";
  EXPECT_EQ(parameters(whole + R"("vision_config": {"model_type": "glm4v_moe_vision"},
                                  "text_config": {"model_type": "glm4v_moe_text", )" +
                       heads + "}}"),
            parameters(R"({"model_type": "glm4v_moe", "text_config": {)" + heads + "}}"));
  EXPECT_EQ(refused_at(whole + R"("text_config": {"model_type": "qwen3"}})"), "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(whole + R"("vision_config": {"model_type": "glm_ocr_vision"}})"),
            "config.json.vision_config.model_type");
}

TEST(GlmgaConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("glmga.json"), 4);
}

}  // namespace
}  // namespace vlmest::glm_ocr_configs_test
