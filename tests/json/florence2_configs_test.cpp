// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::florence2_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& vision, const std::string& text = "") {
  return R"({"model_type": "florence2", "vision_config": {)" + vision + R"(}, "text_config": {)" + text + "}}";
}

TEST(Florence2Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("florence2.json"), 14);
}

TEST(Florence2Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model(R"("depths": [1, 1])")), "config.json.vision_config.depths");
  EXPECT_EQ(refused_at(model(R"("num_groups": [4, 8, 16, 33])")), "config.json.vision_config.num_groups");
  EXPECT_EQ(refused_at(model(R"("patch_prenorm": [true])")), "config.json.vision_config.patch_prenorm");
  EXPECT_EQ(refused_at(model(R"("patch_prenorm": [0, 1, 1, 1])")), "config.json.vision_config.patch_prenorm");
  EXPECT_EQ(refused_at(model(R"("embed_dim": [], "depths": [], "num_heads": [], "num_groups": [], "patch_size": [],
                                "patch_stride": [], "patch_padding": [], "patch_prenorm": [])")),
            "config.json.vision_config.embed_dim");
  EXPECT_EQ(refused_at(model(R"("depths": [1, 1, 2000, 1])")), "config.json.vision_config.depths");
  EXPECT_EQ(refused_at(model(R"("embed_dim": [128, 256, 512, 9223372036854775809])")),
            "config.json.vision_config.embed_dim");
  EXPECT_EQ(refused_at(model(R"("drop_path_rate": 1.0)")), "config.json.vision_config.drop_path_rate");
  EXPECT_EQ(refused_at(model(R"("max_position_embeddings": 20)")), "config.json.vision_config.max_position_embeddings");
  EXPECT_EQ(refused_at(model(R"("projection_dim": 768)")), "config.json.vision_config.projection_dim");
  EXPECT_EQ(refused_at(model("", R"("encoder_layerdrop": 0.1)")), "config.json.text_config.encoder_layerdrop");
  EXPECT_EQ(refused_at(model("", R"("model_type": "t5")")), "config.json.text_config.model_type");
}

}  // namespace
}  // namespace vlmest::florence2_configs_test
