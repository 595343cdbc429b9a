// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/exaone4_5/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::exaone4_5_configs_test {
namespace {

using test::refused_at;

std::string around(const std::string& text, const std::string& vision = {}) {
  return R"({"model_type": "exaone4_5", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}

TEST(Exaone45Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("exaone4_5.json"), 4);
}

// Every fourth layer is full without layer_types, and those have no rotation beside sliding ones.
TEST(Exaone45Configs, LayersSlideByPatternOrByName) {
  const auto sliding = [](const std::string& text) {
    const Vlm m = test::read(around(R"("hidden_size": 3584, "num_hidden_layers": 4)" + text));
    return get<Exaone45Family>(m.family).language.sliding;
  };
  EXPECT_EQ(sliding(""), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(sliding(R"(, "sliding_window_pattern": 2)"), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(sliding(R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"])"),
            (std::vector<bool>{false, true, false, false}));
}

TEST(Exaone45Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(around(R"("head_dim": null)")), "config.json.text_config.head_dim");
  EXPECT_EQ(
      refused_at(around(R"("sliding_window": null, "num_hidden_layers": 1, "layer_types": ["sliding_attention"])")),
      "config.json.text_config.layer_types");
  EXPECT_EQ(refused_at(around("", R"("num_key_value_heads": 7)")), "config.json.vision_config.num_key_value_heads");
}

}  // namespace
}  // namespace vlmest::exaone4_5_configs_test
