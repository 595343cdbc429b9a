// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/cohere2_vision/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::cohere2_vision_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string model(const std::string& vision, const std::string& keys = "") {
  return R"({"model_type": "cohere2_vision", "vision_config": {)" + vision + "}" + (keys.empty() ? "" : ", " + keys) +
         "}";
}

TEST(Cohere2VisionConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("cohere2_vision.json"), 1);
}

// A vision_config has SigLIP's own defaults; without one the class takes a larger tower.
TEST(Cohere2VisionConfigs, TowerOfTheClass) {
  const auto tower = [](const std::string& text) {
    return std::get<SiglipVision>(get<Cohere2VisionFamily>(read(text).family).vision);
  };
  EXPECT_EQ(tower(R"({"model_type": "cohere2_vision"})").hidden, 1152);
  EXPECT_EQ(tower(R"({"model_type": "cohere2_vision"})").image_size, 512);
  EXPECT_EQ(tower(model(R"("num_hidden_layers": 2)")).hidden, 768);
}

TEST(Cohere2VisionConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model("", R"("downsample_factor": 3)")), "config.json.downsample_factor");
  EXPECT_EQ(refused_at(model("", R"("alignment_intermediate_size": 4097)")), "config.json.alignment_intermediate_size");
  EXPECT_EQ(refused_at(model(R"("model_type": "clip_vision_model")")), "config.json.vision_config.model_type");
}

}  // namespace
}  // namespace vlmest::cohere2_vision_configs_test
