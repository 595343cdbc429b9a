// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::video_llama_3_configs_test {
namespace {

using test::refused_at;

TEST(VideoLlama3Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("video_llama_3.json"), 4);
}

TEST(VideoLlama3Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(R"({"model_type": "video_llama_3", "text_config": {"model_type": "bert"}})"),
            "config.json.text_config.model_type");
  EXPECT_EQ(
      refused_at(R"({"model_type": "video_llama_3", "vision_config": {"hidden_size": 90, "num_attention_heads": 9}})"),
      "config.json.vision_config.num_attention_heads");
}

}  // namespace
}  // namespace vlmest::video_llama_3_configs_test
