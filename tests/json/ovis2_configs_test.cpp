// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::ovis2_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& vision, const std::string& more = "") {
  return R"({"model_type": "ovis2", "hidden_size": 896, "vocab_size": 151936, "vision_config": {)" + vision +
         R"(}, "text_config": {"hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2})" + more + "}";
}

TEST(Ovis2Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("ovis2.json"), 5);
}

TEST(Ovis2Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model("")), "accepted");
  EXPECT_EQ(refused_at(model(R"("hidden_stride": 3)")), "config.json.vision_config.hidden_stride");
  EXPECT_EQ(refused_at(model(R"("tokenize_function": "st_argmax")")), "config.json.vision_config.tokenize_function");
  EXPECT_EQ(refused_at(model(R"("num_visual_indicator_tokens": 4)")),
            "config.json.vision_config.num_visual_indicator_tokens");
  EXPECT_EQ(
      refused_at(
          R"({"model_type": "ovis2", "text_config": {"hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2}})"),
      "config.json.hidden_size");
}

}  // namespace
}  // namespace vlmest::ovis2_configs_test
