// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/lfm2_vl/family.hpp>
#include <vlmest/family/lfm2_vl/rule.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::lfm2_vl_configs_test {
namespace {

using test::read;
using test::refused_at;

std::string model(const std::string& text, const std::string& vision = "") {
  return R"({"model_type": "lfm2_vl", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}

TEST(Lfm2VlConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("lfm2_vl.json"), 14);
}

TEST(Lfm2VlConfigs, LanguageModelsAlone) { EXPECT_EQ(test::expect_recorded_parameters("lfm2.json"), 10); }

TEST(Lfm2VlConfigs, WidthOfTheMlps) {
  const auto wide = [](const std::string& keys) {
    return std::get<Lfm2Config>(get<Lfm2VlFamily>(read(model(keys)).family).language).layers.intermediate;
  };
  EXPECT_EQ(wide(""), 8192);
  EXPECT_EQ(wide(R"("block_ff_dim": 6656)"), 4608);
  EXPECT_EQ(wide(R"("intermediate_size": 6656, "block_ffn_dim_multiplier": null)"), 4437);
  EXPECT_EQ(wide(R"("block_ff_dim": 6656, "block_auto_adjust_ff_dim": false)"), 6656);
}

TEST(Lfm2VlConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model(R"("num_hidden_layers": 2, "layer_types": ["conv"])")),
            "config.json.text_config.layer_types");
  EXPECT_EQ(refused_at(model(R"("num_hidden_layers": 1, "layer_types": ["mamba"])")),
            "config.json.text_config.layer_types");
  EXPECT_EQ(refused_at(model("", R"("num_patches": 250)")), "config.json.vision_config.num_patches");
  EXPECT_EQ(refused_at(model("", R"("model_type": "clip_vision_model")")), "config.json.vision_config.model_type");
  EXPECT_EQ(refused_at(model(R"("model_type": "lfm2_moe")")), "config.json.text_config.model_type");
}

}  // namespace
}  // namespace vlmest::lfm2_vl_configs_test
