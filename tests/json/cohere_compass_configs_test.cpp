// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::cohere_compass_configs_test {
namespace {

using test::refused_at;

std::string text(const std::string& keys) {
  return R"({"model_type": "cohere_compass", "text_config": {)" + keys + "}}";
}

TEST(CohereCompassConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("cohere_compass.json"), 4);
}

TEST(CohereCompassConfigs, EachTypeOfLayersHasAnEntryOfItsOwn) {
  EXPECT_EQ(refused_at(text("")), "config.json.text_config.rope_parameters.full_attention");
  EXPECT_EQ(refused_at(text(R"("sliding_window": null, "rope_parameters": {"full_attention": null})")),
            "config.json.text_config.sliding_window");
  EXPECT_EQ(refused_at(text(R"("rope_parameters": {"full_attention": {"mrope_section": [1, 2, 3]}})")),
            "config.json.text_config.rope_parameters.full_attention.mrope_section");
}

}  // namespace
}  // namespace vlmest::cohere_compass_configs_test
