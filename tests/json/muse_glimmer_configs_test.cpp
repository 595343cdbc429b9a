// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/muse_glimmer/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::muse_glimmer_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& text, const std::string& vision = {}, const std::string& more = {}) {
  return R"({"model_type": "muse_glimmer", "text_config": {"num_hidden_layers": 5)" +
         (text.empty() ? "" : ", " + text) + R"(}, "vision_config": {)" + vision + "}" +
         (more.empty() ? "" : ", " + more) + "}";
}
MuseGlimmerFamily family(const std::string& text, const std::string& vision = {}) {
  return get<MuseGlimmerFamily>(test::read(model(text, vision)).family);
}
std::string layers(const std::vector<bool>& marked) {
  std::string s;
  for (const bool m : marked) s += m ? '1' : '0';
  return s;
}

TEST(MuseGlimmerConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("muse_glimmer.json"), 4);
}

// Counted from the last layer backwards; what slides and what turns are two lists.
TEST(MuseGlimmerConfigs, WhichLayersSlideAndTurn) {
  EXPECT_EQ(layers(family("").language.sliding), "01110");
  EXPECT_EQ(layers(family("").language.turns), "01110");
  const MuseGlimmerText own =
      family(R"("layer_rope_theta": [0, 1e4, 0.0, 5, 0, 7], "layer_types": ["full_attention", "full_attention",
                "sliding_attention", "full_attention", "full_attention"])")
          .language;
  EXPECT_EQ(layers(own.sliding), "00100");
  EXPECT_EQ(layers(own.turns), "01010");
}

TEST(MuseGlimmerConfigs, WhichLayersOfTheTowerHaveWindows) {
  EXPECT_EQ(layers(family("", R"("num_hidden_layers": 6)").vision.windows), "111010");
  EXPECT_EQ(layers(family("", R"("num_hidden_layers": 2, "layer_types": ["full_attention", "window_attention"])")
                       .vision.windows),
            "01");
}

TEST(MuseGlimmerConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model("")), "accepted");
  const std::string text = "config.json.text_config.", vision = "config.json.vision_config.";
  EXPECT_EQ(refused_at(model(R"("sliding_window": null)")), text + "sliding_window");
  EXPECT_EQ(refused_at(model(R"("sliding_window": 1)")), text + "sliding_window");
  EXPECT_EQ(refused_at(model(R"("hidden_size": 6660)")), text + "num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("layer_rope_theta": [1, 2, 3, 4])")), text + "layer_rope_theta");
  EXPECT_EQ(refused_at(model(R"("layer_rope_theta": [1, 2, 3, 4, null])")), text + "layer_rope_theta");
  EXPECT_EQ(refused_at(model(R"("layer_types": ["chunked_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"rope_type": "dynamic"})")), text + "rope_parameters.rope_type");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"sliding_attention": {}, "full_attention": {}})")),
            text + "rope_parameters.full_attention");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"rope_type": "yarn", "factor": 4.0})")), "accepted");
  EXPECT_EQ(refused_at(model("", R"("num_attention_heads": 7)")), vision + "num_attention_heads");
  EXPECT_EQ(refused_at(model("", R"("num_attention_heads": 768)")), vision + "num_attention_heads");
  EXPECT_EQ(refused_at(model("", R"("head_dim": 64)")), vision + "head_dim");
  EXPECT_EQ(refused_at(model("", R"("pos_emb_width": 31)")), vision + "pos_emb_width");
  EXPECT_EQ(refused_at(model("", R"("rope_parameters": {"rope_type": "yarn"})")), vision + "rope_parameters.rope_type");
  EXPECT_EQ(refused_at(model("", R"("layer_types": ["full_attention"])")), vision + "layer_types");
  EXPECT_EQ(refused_at(model("", R"("merge_size": 3)")), "config.json.out_hidden_size");
  EXPECT_EQ(refused_at(model("", R"("merge_size": 3)", R"("out_hidden_size": 13824)")), "accepted");
}

// The text_config's word about tied weights has no effect.
TEST(MuseGlimmerConfigs, TheModelSaysWhatIsTied) {
  EXPECT_FALSE(get<MuseGlimmerFamily>(test::read(model(R"("tie_word_embeddings": true)")).family).tied);
  EXPECT_TRUE(get<MuseGlimmerFamily>(test::read(model("", "", R"("tie_word_embeddings": true)")).family).tied);
}

}  // namespace
}  // namespace vlmest::muse_glimmer_configs_test
