// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/internvl/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::qianfan_ocr_configs_test {
namespace {

using test::read;
using test::refused_at;

std::string model(const std::string& vision) {
  return R"({"model_type": "qianfan_ocr", "vision_config": {)" + vision + "}}";
}

TEST(QianfanOcrConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("qianfan_ocr.json"), 2);
}

TEST(QianfanOcrConfigs, RatesAboveZeroDropBranches) {
  const auto drops = [](const std::string& vision) {
    return get<InternVlFamily>(read(model(vision)).family).vision.drop_path;
  };
  EXPECT_TRUE(drops(""));
  EXPECT_FALSE(drops(R"("drop_path_rate": 0.0)"));
}

TEST(QianfanOcrConfigs, WhatIsNotModelledIsRefused) {
  EXPECT_EQ(refused_at(model(R"("projection_dropout": 0.1)")), "config.json.vision_config.projection_dropout");
  EXPECT_EQ(refused_at(model(R"("drop_path_rate": 2)")), "config.json.vision_config.drop_path_rate");
  EXPECT_EQ(refused_at(model(R"("norm_type": "batch_norm")")), "config.json.vision_config.norm_type");
}

}  // namespace
}  // namespace vlmest::qianfan_ocr_configs_test
