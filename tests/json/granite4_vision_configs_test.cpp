// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/granite4_vision/read.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::granite4_vision_configs_test {
namespace {

using test::refused_at;

/// A tower of eight patches a side, four layers of text; `more` follows the model's own keys.
std::string model(const std::string& more = {}, const std::string& text = {}, const std::string& vision = {},
                  const std::string& rate = R"("downsample_rate": "2/4", )") {
  return R"({"model_type": "granite4_vision", "vision_feature_select_strategy": "full", "image_grid_pinpoints": [[64, 128]],
             "deepstack_layer_map": [[-1, 0]], )" +
         rate + R"("text_config": {"num_hidden_layers": 4)" + text +
         R"(}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 128, "num_attention_heads": 2,
                 "num_hidden_layers": 3, "image_size": 64, "patch_size": 8)" +
         vision + "}" + more + "}";
}
Granite4VisionFamily family(const std::string& document) {
  return get<Granite4VisionFamily>(test::read(document).family);
}

TEST(Granite4VisionConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("granite4_vision.json"), 5);
}

TEST(Granite4VisionConfigs, PlaceholdersAreThoseOfTheProcessor) {
  const auto file = nlohmann::json::parse(std::ifstream(VLMEST_SOURCE_DIR "/tests/data/granite_tokens.json"));
  int rows = 0;
  for (const auto& g : file.at("images")) {
    const auto& s = g.at("settings");
    image_processor::Granite4Vision rule{.image_size = s.at("image_size"), .patch_size = s.at("patch_size")};
    rule.pinpoints.clear();
    for (const auto& p : s.at("image_grid_pinpoints")) rule.pinpoints.push_back({p[0], p[1]});
    const auto [query, window] = json::hf::rate_of(s.at("downsample_rate"));
    rule.tile.rows = rule.tile.cols = rule.image_size / rule.patch_size * query / window;
    for (const auto& row : g.at("rows")) {
      ++rows;
      EXPECT_EQ(layout(rule, ImageSize{row[0], row[1]}).llm_tokens, row[2].get<std::int64_t>()) << row;
    }
  }
  EXPECT_EQ(rows, 210);
}

TEST(Granite4VisionConfigs, AQFormerIsAsWideAsTheTower) {
  const WindowQFormerConfig own = family(model()).projector;
  EXPECT_EQ(own.qformer.heads, 2);
  EXPECT_EQ(own.qformer.layers, 1);
  EXPECT_EQ(own.qformer.encoder_hidden, 128);
  EXPECT_EQ(own.features(), 4);
  const std::string keys = R"(, "qformer_config": {"hidden_size": 128, "num_attention_heads": 4)";
  EXPECT_EQ(family(model(keys + R"(, "encoder_hidden_size": 128})")).projector.qformer.layers, 12);
  const std::string at = "config.json.qformer_config.";
  EXPECT_EQ(refused_at(model(keys + "}")), at + "encoder_hidden_size");
  EXPECT_EQ(refused_at(model(R"(, "qformer_config": {"encoder_hidden_size": 128})")), at + "hidden_size");
  EXPECT_EQ(refused_at(model(R"(, "qformer_config": {"model_type": "instructblip_qformer"})")), at + "model_type");
}

TEST(Granite4VisionConfigs, TheTextIsGranites) {
  EXPECT_TRUE(family(model()).language.multipliers);
  EXPECT_EQ(refused_at(model("", R"(, "model_type": "granite")")), "accepted");
  EXPECT_EQ(refused_at(model("", R"(, "model_type": "granitemoehybrid")")), "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(model("", R"(, "logits_scaling": null)")), "config.json.text_config.logits_scaling");
  EXPECT_EQ(refused_at(model("", R"(, "rope_parameters": {"rope_type": "dynamic"})")),
            "config.json.text_config.rope_parameters.rope_type");
}

TEST(Granite4VisionConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model()), "accepted");
  const std::string at = "config.json.";
  EXPECT_EQ(refused_at(model("", "", "", "")), at + "downsample_rate");
  for (const char* rate : {"0/4", "4", "/4", "2/", "2/4x", "1/4", "2/3"})
    EXPECT_EQ(refused_at(model("", "", "", R"("downsample_rate": ")" + std::string(rate) + R"(", )")),
              at + "downsample_rate")
        << rate;
  EXPECT_EQ(refused_at(model(R"(, "spatial_target_layers": [])", "", "", R"("downsample_rate": "1/4", )")), "accepted");
  EXPECT_EQ(refused_at(model(R"(, "spatial_target_layers": [1, 2, 3, 4, 5])")), at + "spatial_target_layers");
  EXPECT_EQ(refused_at(model(R"(, "spatial_vision_layer": 4)")), at + "spatial_vision_layer");
  EXPECT_EQ(refused_at(model(R"(, "spatial_vision_layer": [])")), at + "spatial_vision_layer");
  EXPECT_EQ(refused_at(model("", "", R"(, "model_type": "pixtral")")), at + "vision_config.model_type");
  EXPECT_EQ(refused_at(model("", "", R"(, "model_type": "clip_vision_model")")), at + "vision_feature_select_strategy");
  const auto mapped = [](const std::string& map) {
    return refused_at(
        R"({"model_type": "granite4_vision", "vision_feature_select_strategy": "full", "downsample_rate": "4/8",
                          "image_grid_pinpoints": [[384, 384]], "vision_config": {"model_type": "siglip_vision_model",
                          "image_size": 384}, "deepstack_layer_map": )" +
        map + "}");
  };
  EXPECT_EQ(mapped("[[0, 1]]"), "accepted");
  EXPECT_EQ(mapped("[[0, 99]]"), "accepted") << "features that no layer reads";
  for (const char* map : {"null", "3", "[[0]]", "[[13, 0]]", "[[-14, 0]]", R"([["0", 1]])"})
    EXPECT_EQ(mapped(map), at + "deepstack_layer_map") << map;
}

// Only the model's own key ties.
TEST(Granite4VisionConfigs, TheModelSaysWhatIsTied) {
  EXPECT_FALSE(family(model("", R"(, "tie_word_embeddings": true)")).tied);
  EXPECT_TRUE(family(model(R"(, "tie_word_embeddings": true)")).tied);
}

}  // namespace
}  // namespace vlmest::granite4_vision_configs_test
