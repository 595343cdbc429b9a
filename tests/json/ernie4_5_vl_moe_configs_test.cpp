// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/ernie4_5_vl_moe/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::ernie4_5_vl_moe_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& text, const std::string& vision = {}, const std::string& more = {}) {
  return R"({"model_type": "ernie4_5_vl_moe", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}" +
         (more.empty() ? "" : ", " + more) + "}";
}
Ernie4_5VlFamily family(const std::string& json) { return get<Ernie4_5VlFamily>(test::read(json).family); }

TEST(Ernie4_5VlConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("ernie4_5_vl_moe.json"), 5);
}

TEST(Ernie4_5VlConfigs, AllLayersButTheFirstAreSparse) {
  EXPECT_EQ(family(model(R"("num_hidden_layers": 3)")).language.sparse, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(family(model(R"("num_hidden_layers": 2, "mlp_layer_types": ["sparse", "dense"])")).language.sparse,
            (std::vector<bool>{true, false}));
}

// attribute_map: the names that other classes have for the same.
TEST(Ernie4_5VlConfigs, OtherNamesAreReadToo) {
  const Ernie4_5VlFamily f =
      family(model(R"("num_experts": 12, "num_experts_per_tok": 3)", R"("num_attention_heads": 8)"));
  EXPECT_EQ(f.language.moe.text.experts, 12);
  EXPECT_EQ(f.language.moe.vision.top_k, 3);
  EXPECT_EQ(f.vision.heads, 8);
}

TEST(Ernie4_5VlConfigs, TextKeysMayStandBesideTheTower) {
  EXPECT_EQ(family(R"({"model_type": "ernie4_5_vl_moe", "num_hidden_layers": 5})").language.layers, 5);
}

TEST(Ernie4_5VlConfigs, TheModelSaysWhatIsTied) {
  EXPECT_TRUE(family(model(R"("tie_word_embeddings": false)")).tied);
  EXPECT_FALSE(family(model("", "", R"("tie_word_embeddings": false)")).tied);
}

TEST(Ernie4_5VlConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model("")), "accepted");
  const std::string text = "config.json.text_config.", vision = "config.json.vision_config.";
  EXPECT_EQ(refused_at(model(R"("moe_k": 65)")), text + "moe_k");
  EXPECT_EQ(refused_at(model(R"("num_experts_per_tok": 65)")), text + "num_experts_per_tok");
  EXPECT_EQ(refused_at(model(R"("moe_intermediate_size": [1536])")), text + "moe_intermediate_size");
  EXPECT_EQ(refused_at(model(R"("moe_intermediate_size": [1536, 0])")), text + "moe_intermediate_size");
  EXPECT_EQ(refused_at(model(R"("mlp_layer_types": ["dense"])")), text + "mlp_layer_types");
  EXPECT_EQ(refused_at(model(R"("output_router_logits": true)")), text + "output_router_logits");
  EXPECT_EQ(refused_at(model(R"("head_dim": 64)")), text + "rope_parameters.mrope_section");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"mrope_section": [24, 20, 20]})")),
            text + "rope_parameters.mrope_section");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"rope_type": "yarn"})")), text + "rope_parameters.rope_type");
  EXPECT_EQ(refused_at(model("", R"("temporal_merge_size": 1)")), vision + "temporal_merge_size");
  EXPECT_EQ(refused_at(model("", R"("num_heads": 7)")), vision + "num_heads");
  EXPECT_EQ(refused_at(model("", R"("num_heads": 640)")), vision + "num_heads");
}

}  // namespace
}  // namespace vlmest::ernie4_5_vl_moe_configs_test
