// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::paddleocr_vl_configs_test {
namespace {

using test::refused_at;

TEST(PaddleOcrConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("paddleocr_vl.json"), 4);
}

// The head is tied where either part says so.
TEST(PaddleOcrConfigs, EitherPartTiesTheHead) {
  const auto count = [](bool outer, bool inner) {
    const auto word = [](bool b) { return std::string(b ? "true" : "false"); };
    return test::parameters(R"({"model_type": "paddleocr_vl", "tie_word_embeddings": )" + word(outer) +
                            R"(, "text_config": {"tie_word_embeddings": )" + word(inner) + "}}");
  };
  EXPECT_EQ(count(true, false), count(true, true));
  EXPECT_EQ(count(false, true), count(true, true));
  EXPECT_EQ(count(false, false) - count(true, true), 103424 * 1024);
}

TEST(PaddleOcrConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(
      refused_at(R"({"model_type": "paddleocr_vl", "vision_config": {"hidden_size": 96, "num_attention_heads": 16}})"),
      "config.json.vision_config.num_attention_heads");
}

}  // namespace
}  // namespace vlmest::paddleocr_vl_configs_test
