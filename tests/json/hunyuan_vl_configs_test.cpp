// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::hunyuan_vl_configs_test {
namespace {

using test::refused_at;

std::string text(const std::string& keys) { return R"({"model_type": "hunyuan_vl", "text_config": {)" + keys + "}}"; }

TEST(HunYuanConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("hunyuan_vl.json"), 4);
}

TEST(HunYuanConfigs, AxesAreAsManyAsSections) {
  const std::string head = R"("head_dim": 128, "rope_parameters": )";
  EXPECT_EQ(refused_at(text(head + R"({"xdrope_section": [16, 16, 16, 16]})")), "accepted");
  EXPECT_EQ(refused_at(text(head + R"({"mrope_section": [16.0, 24, 24]})")), "accepted");
  EXPECT_EQ(refused_at(text(head + R"({"mrope_section": [32, 32]})")),
            "config.json.text_config.rope_parameters.mrope_section");
  EXPECT_EQ(refused_at(text(head + R"({"mrope_section": [16, 24, 25]})")),
            "config.json.text_config.rope_parameters.mrope_section");
  EXPECT_EQ(refused_at(text(R"("head_dim": 128)")), "config.json.text_config.rope_parameters.mrope_section");
}

}  // namespace
}  // namespace vlmest::hunyuan_vl_configs_test
