// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/minimax_m3_vl/family.hpp>
#include <vlmest/family/minimax_m3_vl/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::minimax_m3_vl_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& text = {}, const std::string& vision = {}, const std::string& more = {}) {
  return R"({"model_type": "minimax_m3_vl", "text_config": {"num_hidden_layers": 4)" +
         (text.empty() ? "" : ", " + text) + R"(}, "vision_config": {)" + vision + "}" +
         (more.empty() ? "" : ", " + more) + "}";
}
MiniMaxM3VlFamily family(const std::string& text, const std::string& vision = {}, const std::string& more = {}) {
  return get<MiniMaxM3VlFamily>(test::read(model(text, vision, more)).family);
}
std::string layers(const std::vector<bool>& marked) {
  std::string s;
  for (const bool m : marked) s += m ? '1' : '0';
  return s;
}

TEST(MiniMaxM3VlConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("minimax_m3_vl.json"), 5);
}

TEST(MiniMaxM3VlConfigs, WhichLayersChooseAndHaveExperts) {
  EXPECT_EQ(layers(family("").language.chooses), "0000");
  EXPECT_EQ(layers(family("").language.sparse), "1111");
  const std::string old = R"("moe_layer_freq": [0, 1, 1, 0],
                             "sparse_attention_config": {"sparse_attention_freq": [0, 0, 1, 1]})";
  EXPECT_EQ(layers(family(old).language.chooses), "0011");
  EXPECT_EQ(layers(family(old).language.sparse), "0110");
  const MiniMaxM3Text own =
      family(old + R"(, "layer_types": ["minimax_m3_sparse", "full_attention", "full_attention", "full_attention"],
                       "mlp_layer_types": ["dense", "dense", "dense", "sparse"])")
          .language;
  EXPECT_EQ(layers(own.chooses), "1000");
  EXPECT_EQ(layers(own.sparse), "0001");
}

// What checkpoints say comes before the class's own keys, and partial_rotary_factor before rotary_dim.
TEST(MiniMaxM3VlConfigs, TheIndexersSizesAreThoseOfTheCheckpoint) {
  const MiniMaxM3Text t =
      family(R"("index_n_heads": 8, "index_block_size": 64, "rotary_dim": 32, "partial_rotary_factor": 0.5,
                "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_local_block": 0})")
          .language;
  EXPECT_EQ(t.indexer.heads, 2);
  EXPECT_EQ(t.indexer.block, 64);
  EXPECT_EQ(t.indexer.local_blocks, 0);
  EXPECT_EQ(t.rotary_dim, 64);
  EXPECT_EQ(family("").language.rotary_dim, 128);
}

TEST(MiniMaxM3VlConfigs, EitherConfigTies) {
  EXPECT_FALSE(family("").tied);
  EXPECT_TRUE(family(R"("tie_word_embeddings": true)").tied);
  EXPECT_TRUE(family("", "", R"("tie_word_embeddings": true)").tied);
}

TEST(MiniMaxM3VlConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model(R"("hidden_act": "swigluoai")")), "accepted");
  const std::string text = "config.json.text_config.", vision = "config.json.vision_config.";
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 30)")), text + "num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("head_dim": null)")), text + "head_dim");
  EXPECT_EQ(refused_at(model(R"("num_experts_per_tok": 129)")), text + "num_experts_per_tok");
  EXPECT_EQ(refused_at(model(R"("output_router_logits": true)")), text + "output_router_logits");
  EXPECT_EQ(refused_at(model(R"("moe_layer_freq": [0, 1])")), text + "moe_layer_freq");
  EXPECT_EQ(refused_at(model(R"("layer_types": ["sliding_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(model(R"("mlp_layer_types": ["dense", "dense", "dense", "moe"])")), text + "mlp_layer_types");
  EXPECT_EQ(refused_at(model(R"("rope_scaling": {"rope_type": "dynamic"})")), text + "rope_scaling.rope_type");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"full_attention": {}})")), text + "rope_parameters.full_attention");
  EXPECT_EQ(refused_at(model(R"("partial_rotary_factor": 0)")), text + "partial_rotary_factor");
  EXPECT_EQ(refused_at(model(R"("index_n_heads": 3)")), "accepted") << "no layer chooses";
  const std::string chooses = R"(, "sparse_attention_config": {"sparse_attention_freq": [0, 0, 0, 1])";
  EXPECT_EQ(refused_at(model(R"("index_n_heads": 3)" + chooses + "}")), text + "index_n_heads");
  EXPECT_EQ(refused_at(model(R"("index_n_heads": 4)" + chooses + R"(, "sparse_num_index_heads": 3})")),
            text + "sparse_attention_config.sparse_num_index_heads");
  EXPECT_EQ(refused_at(model(R"("index_topk_blocks": 0)")), text + "index_topk_blocks");
  EXPECT_EQ(refused_at(model("", R"("num_attention_heads": 7)")), vision + "num_attention_heads");
  EXPECT_EQ(refused_at(model("", R"("hidden_size": 544)")), vision + "num_attention_heads");
  EXPECT_EQ(refused_at(model("", R"("rope_parameters": {"rope_type": "yarn"})")), vision + "rope_parameters.rope_type");
  EXPECT_EQ(refused_at(model("", "", R"("projector_hidden_size": null)")), "config.json.projector_hidden_size");
}

// The released file's square stands for the limits of the class.
TEST(MiniMaxM3VlConfigs, ProcessorsMustAgreeWithTheConfig) {
  const auto read = [](const char* keys, json::ProcessorFile file = json::ProcessorFile::preprocessor) {
    Vlm m = test::read(R"({"model_type": "minimax_m3_vl"})");
    json::read_processor(nlohmann::json::parse(keys), "preprocessor_config.json", file, m);
    return m;
  };
  const auto tokens = [&](const char* keys) {
    return layout(read(keys).image_processor, ImageSize{1344, 1344}).llm_tokens;
  };
  EXPECT_EQ(tokens(R"({"size": [672, 672], "patch_size": 14, "merge_size": 2, "temporal_patch_size": 2})"), 576);
  EXPECT_EQ(tokens(R"({"size": [672, 672], "max_pixels": 602112})"), 27 * 27);
  EXPECT_EQ(tokens(R"({"size": {"shortest_edge": 3136, "longest_edge": 602112}})"), 27 * 27);
  EXPECT_THROW(read(R"({"size": [336, 336]})"), Error);
  EXPECT_THROW(read(R"({"patch_size": 16})"), Error);
  EXPECT_THROW(read(R"({"temporal_patch_size": 1})"), Error);
  EXPECT_THROW(read(R"({"patch_size": 16})", json::ProcessorFile::video), Error);
}

}  // namespace
}  // namespace vlmest::minimax_m3_vl_configs_test
