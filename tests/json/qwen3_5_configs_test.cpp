// SPDX-License-Identifier: Apache-2.0
// Qwen3.5's configs: weights as transformers 5.17 names and shapes them, what absent keys mean, what is refused.
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/nn/family/qwen3_5.hpp>

#include "config_support.hpp"

namespace vlmest::qwen3_5_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

nlohmann::json recorded() {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/parameters/qwen3_5.json");
  return nlohmann::json::parse(in);
}

/// Every weight by its name, as state_dict has it; a tied head is the embedding.
std::map<std::string, std::string> weights(const Vlm& vlm) {
  Builder b;
  const Plan plan;
  Context c{b, plan};
  vlm.family.make_model(c);
  std::map<std::string, std::string> r;
  for (const auto& t : b.graph.tensors)
    if (t.role == Role::weight && t.alias_of == none) r[path(b.graph, t.scope) + "." + t.name] = to_string(t.shape);
  return r;
}
std::string shape_text(const nlohmann::json& sizes) {
  Shape s;
  for (const auto& n : sizes) s.push_back(n.get<std::int64_t>());
  return to_string(s);
}

TEST(Qwen35Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  int checked = 0;
  for (const auto& e : recorded()) {
    const Vlm vlm = read(e.at("config").dump());
    EXPECT_EQ(parameters(vlm), e.at("total").get<std::int64_t>()) << e.at("name");
    if (!e.contains("parameters")) continue;
    std::map<std::string, std::string> expected;
    for (const auto& [name, sizes] : e.at("parameters").items()) expected[name] = shape_text(sizes);
    EXPECT_EQ(weights(vlm), expected) << e.at("name");
    ++checked;
  }
  EXPECT_EQ(checked, 7);
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
