// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/glm4v/family.hpp>

#include "config_support.hpp"

namespace vlmest::glm4v_blip2_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string glm(const std::string& text, const std::string& vision = "") {
  return R"({"model_type": "glm4v", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}
std::string blip(const std::string& text, const std::string& qformer = "", const std::string& more = "") {
  return R"({"model_type": "blip-2", "text_config": {)" + text + R"(}, "qformer_config": {)" + qformer + "}" + more +
         "}";
}
const std::string opt_2_7b =
    R"("hidden_size": 2560, "ffn_dim": 10240, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50272)";

// Published counts of zai-org/GLM-4.1V-9B-Thinking and Salesforce/blip2-opt-2.7b, whose configs are the classes'
// defaults but for what is given.
TEST(Glm4vConfigs, DefaultsAreThePublishedModel) {
  EXPECT_EQ(parameters(R"({"model_type": "glm4v"})"), 10292777472);
  EXPECT_EQ(parameters(glm(R"("tie_word_embeddings": true)")), 10292777472 - std::int64_t{151552} * 4096);
}
TEST(Blip2Configs, DefaultsAndOptAreThePublishedModel) {
  EXPECT_EQ(parameters(blip(opt_2_7b)), 3744679936);
  EXPECT_EQ(parameters(blip(opt_2_7b + R"(, "tie_word_embeddings": false)")), 3744679936 + std::int64_t{50272} * 2560);
}

TEST(Glm4vConfigs, RotaryChannelsFollowThePartialFactor) {
  const auto text = [](const std::string& t) { return get<Glm4vFamily>(read(glm(t)).family).language; };
  EXPECT_EQ(text("").rotary_dim, 128);
  EXPECT_EQ(text(R"("partial_rotary_factor": 0.25)").rotary_dim, 32);
  const auto half = text(R"("rope_parameters": {"partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]})");
  EXPECT_EQ(half.rotary_dim, 64);
  EXPECT_EQ(half.sections, (std::vector<std::int64_t>{8, 12, 12}));
}

TEST(Blip2Configs, QFormerKeysChangeWhatTheySay) {
  const std::int64_t base = parameters(blip(opt_2_7b));
  const std::int64_t attention = 2 * (768 * 768 + 768) + 2 * (1408 * 768 + 768) + 2 * 768;
  EXPECT_EQ(parameters(blip(opt_2_7b, R"("cross_attention_frequency": 3)")), base - 2 * attention);
  const std::int64_t mlp = 768 * 3072 + 3072 + 3072 * 768 + 768 + 2 * 768;
  EXPECT_EQ(parameters(blip(opt_2_7b, R"("use_qformer_text_input": true)")), base + 12 * mlp);
  EXPECT_EQ(parameters(blip(opt_2_7b, "", R"(, "num_query_tokens": 64)")), base + 32 * 768);
  EXPECT_EQ(parameters(blip(opt_2_7b, "", R"(, "vision_config": {"qkv_bias": false})")), base - 39 * 3 * 1408);
}

TEST(Blip2Configs, OptKeysChangeWhatTheySay) {
  const std::int64_t base = parameters(blip(opt_2_7b));
  EXPECT_EQ(parameters(blip(opt_2_7b + R"(, "max_position_embeddings": 1024)")), base - 1024 * 2560);
  EXPECT_EQ(parameters(blip(opt_2_7b + R"(, "do_layer_norm_before": false)")), base - 2 * 2560);
  EXPECT_EQ(parameters(blip(opt_2_7b + R"(, "enable_bias": false)")), base - 32 * (5 * 2560 + 10240));
  EXPECT_EQ(parameters(blip(opt_2_7b + R"(, "layer_norm_elementwise_affine": false)")), base - (32 * 2 + 1) * 2 * 2560);
}

TEST(Glm4vConfigs, BadValuesNameTheirKey) {
  EXPECT_EQ(refused_at(glm("", R"("num_heads": 11)")), "config.json.vision_config.num_heads");
  EXPECT_EQ(refused_at(glm("", R"("patch_size": 337)")), "config.json.vision_config.patch_size");
  EXPECT_EQ(refused_at(glm("", R"("out_hidden_size": 2048)")), "config.json.vision_config.out_hidden_size");
  EXPECT_EQ(refused_at(glm(R"("num_key_value_heads": 3)")), "config.json.text_config.num_key_value_heads");
  EXPECT_EQ(refused_at(glm(R"("head_dim": 64)")), "config.json.text_config.head_dim");
  EXPECT_EQ(refused_at(glm(R"("partial_rotary_factor": 1.5)")), "config.json.text_config.partial_rotary_factor");
  EXPECT_EQ(refused_at(glm(R"("rope_parameters": {"mrope_section": []})")),
            "config.json.text_config.rope_parameters.mrope_section");
}
TEST(Blip2Configs, BadValuesNameTheirKey) {
  EXPECT_EQ(refused_at(blip(R"("model_type": "llama")")), "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(blip("", "", R"(, "use_decoder_only_language_model": false)")),
            "config.json.use_decoder_only_language_model");
  EXPECT_EQ(refused_at(blip(R"("num_attention_heads": 7)")), "config.json.text_config.num_attention_heads");
  EXPECT_EQ(refused_at(blip(R"("word_embed_proj_dim": 512)")), "config.json.text_config.word_embed_proj_dim");
  EXPECT_EQ(refused_at(blip(R"("dropout": 1.5)")), "config.json.text_config.dropout");
  EXPECT_EQ(refused_at(blip("", R"("num_attention_heads": 5)")), "config.json.qformer_config.num_attention_heads");
  EXPECT_EQ(refused_at(blip("", R"("cross_attention_frequency": 0)")),
            "config.json.qformer_config.cross_attention_frequency");
  EXPECT_EQ(refused_at(blip("", "", R"(, "num_query_tokens": -1)")), "config.json.num_query_tokens");
}

}  // namespace
}  // namespace vlmest::glm4v_blip2_configs_test
