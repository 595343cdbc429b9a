// SPDX-License-Identifier: Apache-2.0
// MiniCPM-V 2.6's config and processor's file, through its row alone: weights, what is refused, what sets its slices.
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/minicpmv/read.hpp>
#include <vlmest/json/hf/read.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::minicpmv_configs_test {
namespace {

constexpr auto rows = json::family_rows<family::MiniCpmV>;

Vlm own(const std::string& text) { return json::hf::read(nlohmann::json::parse(text), "config.json", rows); }
std::string model(const std::string& more = "") {
  return R"({"model_type": "minicpmv", "version": 2.6, "hidden_size": 256, "intermediate_size": 300,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 500)" +
         more + "}";
}
std::string refused(const std::string& text) {
  try {
    own(text);
  } catch (const Error& e) {
    return e.where;
  }
  return "";
}

TEST(MiniCpmVConfigs, WeightsHaveTheNamesAndShapesOfItsCode) {
  EXPECT_EQ(test::expect_recorded_parameters("minicpmv.json"), 14);
}

TEST(MiniCpmVConfigs, WeightsHaveTheNamesOfTheCode) {
  const auto w = test::named_weights(own(model(R"(, "query_num": 10, "vision_config": {"hidden_size": 48,
      "intermediate_size": 60, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 56, "patch_size": 14})")));
  const auto at = [&](const std::string& name) { return w.count(name) ? w.at(name) : std::string("missing"); };
  EXPECT_EQ(at("vpm.embeddings.position_embedding.weight"), to_string(Shape{16, 48}));
  EXPECT_EQ(at("vpm.encoder.layers.1.self_attn.out_proj.bias"), to_string(Shape{48}));
  EXPECT_EQ(at("vpm.encoder.layers.2.layer_norm1.weight"), "missing") << "drop_vision_last_layer is true by default";
  EXPECT_EQ(at("resampler.query"), to_string(Shape{10, 256}));
  EXPECT_EQ(at("resampler.proj"), to_string(Shape{256, 256}));
  EXPECT_EQ(at("resampler.kv_proj.weight"), to_string(Shape{256, 48}));
  EXPECT_EQ(at("resampler.attn.in_proj_weight"), to_string(Shape{768, 256}));
  EXPECT_EQ(at("resampler.attn.out_proj.bias"), to_string(Shape{256}));
  EXPECT_EQ(at("llm.model.layers.1.self_attn.q_proj.bias"), to_string(Shape{256}));
  EXPECT_EQ(at("llm.lm_head.weight"), to_string(Shape{500, 256}));
}

TEST(MiniCpmVConfigs, ATowerAsWideAsTheLanguageModelIsNotProjected) {
  const auto w = test::named_weights(own(model(R"(, "vision_config": {"hidden_size": 256, "num_attention_heads": 4,
      "num_hidden_layers": 1, "image_size": 56, "patch_size": 14})")));
  EXPECT_EQ(w.count("resampler.kv_proj.weight"), 0u);
}

TEST(MiniCpmVConfigs, OtherVersionsBringOtherCode) {
  EXPECT_EQ(refused(R"({"model_type": "minicpmv"})"), "config.json.version");
  EXPECT_EQ(refused(R"({"model_type": "minicpmv", "version": 4.5})"), "config.json.version");
}

TEST(MiniCpmVConfigs, WhatCannotRunOrWasNotFollowedIsRefused) {
  EXPECT_EQ(refused(model(R"(, "slice_mode": false)")), "config.json.slice_mode");
  EXPECT_EQ(refused(model(R"(, "hidden_size": 320)")), "config.json.hidden_size");
  EXPECT_EQ(refused(model(R"(, "slice_config": {"patch_size": 16})")), "config.json.slice_config.patch_size");
  EXPECT_EQ(refused(model(R"(, "vision_config": {"patch_size": 14, "attention_dropout": 0.1})")),
            "config.json.vision_config.attention_dropout");
}

TEST(MiniCpmVConfigs, TheConfigSaysWhetherPicturesAreCut) {
  constexpr ImageSize large{1344, 1344};
  EXPECT_EQ(layout(own(model()).image_processor, large).tiles, 1) << "a config without slice_config cuts nothing";
  const Vlm m = own(model(R"(, "slice_config": {"max_slice_nums": 9})"));
  EXPECT_EQ(layout(m.image_processor, large).tiles, 10);
}

TEST(MiniCpmVConfigs, PiecesLongerThanTheTableAreRefused) {
  EXPECT_EQ(layout(image_processor::MiniCpmV{}, {300, 800}).patches.count(), 20 * 52);
  EXPECT_THROW(layout(image_processor::MiniCpmV{}, {100, 900}), Error);
}

}  // namespace
}  // namespace vlmest::minicpmv_configs_test
