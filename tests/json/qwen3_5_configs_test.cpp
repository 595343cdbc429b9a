// SPDX-License-Identifier: Apache-2.0
// Qwen3.5's configs: weights as transformers 5.17 names and shapes them, what absent keys mean, what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/qwen3_5/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::qwen3_5_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

TEST(Qwen35Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("qwen3_5.json"), 7);
}

// The checkpoints' MTP layers are not in the classes: transformers leaves them out when it loads.
TEST(Qwen35Configs, MtpLayersAreNoPartOfTheModel) {
  const std::string sizes = R"("hidden_size": 320, "vocab_size": 1000, "num_hidden_layers": 4)";
  EXPECT_EQ(parameters(R"({"model_type": "qwen3_5_text", )" + sizes + R"(, "mtp_num_hidden_layers": 1})"),
            parameters(R"({"model_type": "qwen3_5_text", )" + sizes + "}"));
}

std::string dense(const std::string& text, const std::string& vision = R"("out_hidden_size": 4096)") {
  return R"({"model_type": "qwen3_5", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}
std::string sparse(const std::string& text) { return R"({"model_type": "qwen3_5_moe_text", )" + text + "}"; }
const Qwen35TextConfig& language(const Vlm& v) { return get<Qwen35Family>(v.family).language; }

TEST(Qwen35Configs, EveryNthLayerIsFullUnlessTheyAreNamed) {
  const Vlm third = read(dense(R"("num_hidden_layers": 7, "full_attention_interval": 3)"));
  EXPECT_EQ(language(third).full, (std::vector<bool>{false, false, true, false, false, true, false}));
  const Vlm named =
      read(dense(R"("num_hidden_layers": 3, "layer_types": ["full_attention", "linear_attention", "full_attention"])"));
  EXPECT_EQ(language(named).full, (std::vector<bool>{true, false, true}));
}

TEST(Qwen35Configs, AQuarterOfEachHeadTurnsUnlessToldOtherwise) {
  EXPECT_EQ(language(read(dense(""))).layers.rotary_dim, 64);
  EXPECT_EQ(language(read(dense(R"("partial_rotary_factor": 0.5)"))).layers.rotary_dim, 128);
  EXPECT_EQ(language(read(dense(R"("rope_parameters": {"partial_rotary_factor": 1.0})"))).layers.rotary_dim, 256);
}

TEST(Qwen35Configs, WrongValuesAreRefusedWhereTheyStand) {
  const std::string text = "config.json.text_config.";
  EXPECT_EQ(refused_at(dense("")), "accepted");
  EXPECT_EQ(refused_at(dense("", "")), "config.json.vision_config.out_hidden_size");
  EXPECT_EQ(refused_at(dense("", R"("out_hidden_size": 4096, "deepstack_visual_indexes": [8])")),
            "config.json.vision_config.deepstack_visual_indexes");
  EXPECT_EQ(refused_at(dense(R"("attn_output_gate": false)")), text + "attn_output_gate");
  EXPECT_EQ(refused_at(dense(R"("layer_types": ["full_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(dense(R"("num_hidden_layers": 1, "layer_types": ["sliding_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(dense(R"("linear_num_value_heads": 24)")), text + "linear_num_value_heads");
  EXPECT_EQ(refused_at(dense(R"("linear_conv_kernel_dim": 1)")), text + "linear_conv_kernel_dim");
  EXPECT_EQ(refused_at(dense(R"("full_attention_interval": 0)")), text + "full_attention_interval");
  EXPECT_EQ(refused_at(dense(R"("num_key_value_heads": 3)")), text + "num_key_value_heads");
  EXPECT_EQ(refused_at(dense(R"("rope_parameters": {"partial_rotary_factor": 0.012})")),
            text + "rope_parameters.partial_rotary_factor");
  EXPECT_EQ(refused_at(dense(R"("rope_parameters": {"mrope_section": [11, 11]})")), text + "mrope_section");
  EXPECT_EQ(refused_at(sparse(R"("num_experts": 0)")), "config.json.num_experts");
  EXPECT_EQ(refused_at(sparse(R"("num_experts": 4, "num_experts_per_tok": 5)")), "config.json.num_experts_per_tok");
  EXPECT_EQ(refused_at(sparse(R"("output_router_logits": true)")), "config.json.output_router_logits");
}

}  // namespace
}  // namespace vlmest::qwen3_5_configs_test
