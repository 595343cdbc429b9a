// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/minicpmv4_6/rule.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::minicpmv4_6_configs_test {
namespace {

using test::refused_at;

TEST(MiniCpmConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("minicpmv4_6.json"), 4);
}

TEST(MiniCpmConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(R"({"model_type": "minicpmv4_6"})"), "config.json.image_token_id");
  EXPECT_EQ(refused_at(R"({"model_type": "minicpmv4_6", "image_token_id": 5, "text_config": {"model_type": "qwen3"}})"),
            "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(R"({"model_type": "minicpmv4_6", "image_token_id": 5, "merge_kernel_size": [3, 3]})"),
            "config.json.merge_kernel_size");
  const auto tower = [](const std::string& keys) {
    return refused_at(R"({"model_type": "minicpmv4_6", "image_token_id": 5, "vision_config": {"num_hidden_layers": 4},
                          "text_config": {"model_type": "qwen3_5_text"}, )" +
                      keys + "}");
  };
  EXPECT_EQ(tower(R"("insert_layer_id": 4)"), "config.json.insert_layer_id");
  EXPECT_EQ(tower(R"("insert_layer_id": -1)"), "config.json.insert_layer_id");
  EXPECT_EQ(tower(R"("insert_layer_id": 3)"), "accepted");
  EXPECT_EQ(tower(R"("insert_layer_id": 4, "downsample_mode": "4x")"), "accepted");
  EXPECT_EQ(tower(R"("insert_layer_id": 3, "downsample_mode": "8x")"), "config.json.downsample_mode");
}

// 896 x 896 is four slices of 448 x 448 and the whole at that size: 32 x 32 patches each, merged by sixteen.
TEST(MiniCpmConfigs, SlicesStandBehindTheWhole) {
  const ImageLayout l = layout(image_processor::MiniCpm{}, ImageSize{896, 896});
  EXPECT_EQ(l.tiles, 5);
  EXPECT_EQ(l.llm_tokens, 5 * 64);
  EXPECT_EQ(l.text_overhead, 2 + 4 * 2 + 1 + 3);
}

}  // namespace
}  // namespace vlmest::minicpmv4_6_configs_test
