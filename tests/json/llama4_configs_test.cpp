// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/nn/family/causal_lm.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::llama4_configs_test {
namespace {

using test::refused_at;

std::string alone(const std::string& keys) {
  return R"({"model_type": "llama4_text", "num_hidden_layers": 4)" + (keys.empty() ? "" : ", " + keys) + "}";
}
std::string model(const std::string& vision) {
  return R"({"model_type": "llama4", "text_config": {"num_hidden_layers": 1}, "vision_config": {)" + vision + "}}";
}
Llama4Config text(const std::string& keys) {
  return std::get<Llama4Config>(get<CausalLmFamily>(test::read(alone(keys)).family).language);
}
std::string layers(const std::vector<bool>& marked) {
  std::string s;
  for (const bool m : marked) s += m ? '1' : '0';
  return s;
}

TEST(Llama4Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("llama4.json"), 6);
}

TEST(Llama4Configs, WhichLayersHavePositionsExpertsAndChunks) {
  EXPECT_EQ(layers(text("").rotary), "1110");
  EXPECT_EQ(layers(text("").chunked), "1110");
  EXPECT_EQ(layers(text("").sparse), "1111");
  EXPECT_EQ(layers(text(R"("no_rope_layer_interval": 2)").rotary), "1010");
  EXPECT_EQ(layers(text(R"("no_rope_layers": [])").rotary), "1110");
  const Llama4Config own = text(R"("no_rope_layers": [0, 0, 1, 1], "moe_layers": [2, 7])");
  EXPECT_EQ(layers(own.rotary), "0011");
  EXPECT_EQ(layers(own.chunked), "0011") << "as they have positions, where layer_types is absent";
  EXPECT_EQ(layers(own.sparse), "0010");
  EXPECT_EQ(layers(text(R"("moe_layers": [])").sparse), "0000");
  EXPECT_EQ(layers(text(R"("interleave_moe_layer_step": 2)").sparse), "0101");
  const Llama4Config named =
      text(R"("layer_types": ["full_attention", "chunked_attention", "full_attention", "full_attention"])");
  EXPECT_EQ(layers(named.chunked), "0100");
  EXPECT_EQ(layers(named.rotary), "1110");
}

TEST(Llama4Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(alone("")), "accepted");
  const std::string at = "config.json.";
  EXPECT_EQ(refused_at(alone(R"("attention_chunk_size": null)")), at + "attention_chunk_size");
  EXPECT_EQ(refused_at(alone(R"("attention_chunk_size": 1)")), at + "attention_chunk_size");
  EXPECT_EQ(refused_at(alone(R"("attn_temperature_tuning": 4)")), at + "attn_temperature_tuning");
  EXPECT_EQ(refused_at(alone(R"("num_experts_per_tok": 17)")), at + "num_experts_per_tok");
  EXPECT_EQ(refused_at(alone(R"("no_rope_layers": [1])")), at + "no_rope_layers");
  EXPECT_EQ(refused_at(alone(R"("no_rope_layers": [1, 1, 1, 1, 1])")), at + "no_rope_layers");
  EXPECT_EQ(refused_at(alone(R"("no_rope_layer_interval": 0)")), at + "no_rope_layer_interval");
  EXPECT_EQ(refused_at(alone(R"("interleave_moe_layer_step": 0)")), at + "interleave_moe_layer_step");
  EXPECT_EQ(refused_at(alone(R"("layer_types": ["chunked_attention"])")), at + "layer_types");
  EXPECT_EQ(refused_at(alone(R"("rope_scaling": {"rope_type": "dynamic"})")), at + "rope_scaling.rope_type");
  EXPECT_EQ(refused_at(alone(R"("rope_scaling": {"rope_type": "llama3", "partial_rotary_factor": 0.5})")),
            at + "rope_scaling.partial_rotary_factor");
  EXPECT_EQ(refused_at(alone(R"("rope_scaling": {"rope_type": "llama3", "factor": 16.0})")), "accepted");
  EXPECT_EQ(refused_at(model("")), "accepted");
  EXPECT_EQ(refused_at(model(R"("image_size": [336, 336])")), at + "vision_config.image_size");
  EXPECT_EQ(refused_at(model(R"("patch_size": [14, 14])")), at + "vision_config.patch_size");
  EXPECT_EQ(refused_at(model(R"("pixel_shuffle_ratio": 0.3)")), at + "vision_config.pixel_shuffle_ratio");
  EXPECT_EQ(refused_at(model(R"("image_size": 350)")), at + "vision_config.pixel_shuffle_ratio") << "25 patches a side";
}

}  // namespace
}  // namespace vlmest::llama4_configs_test
