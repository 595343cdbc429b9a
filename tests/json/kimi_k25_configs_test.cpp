// SPDX-License-Identifier: Apache-2.0
// Kimi-K2.5's configs: weights as transformers 5.17 names and shapes them, the names that the released checkpoints
// give the tower's sizes, what cannot run; the processor's settings.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/kimi_k25/family.hpp>
#include <vlmest/family/kimi_k25/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::kimi_k25_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string model(const std::string& vision, const std::string& keys = "") {
  return R"({"model_type": "kimi_k25", "vision_config": {)" + vision + "}" + (keys.empty() ? "" : ", " + keys) + "}";
}

TEST(KimiK25Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("kimi_k25.json"), 10);
}

TEST(KimiK25Configs, CheckpointsNameTheTowersSizesOtherwise) {
  const auto tower = [](const std::string& text) { return get<KimiK25Family>(read(text).family).vision; };
  const MoonVit own = tower(model(R"("hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
      "num_attention_heads": 4, "pos_emb_height": 8, "pos_emb_width": 9, "pos_emb_time": 2)",
                                  R"("projection_hidden_size": 64)"));
  const MoonVit released = tower(model(R"("vt_hidden_size": 64, "vt_intermediate_size": 96, "vt_num_hidden_layers": 3,
      "vt_num_attention_heads": 4, "init_pos_emb_height": 8, "init_pos_emb_width": 9, "init_pos_emb_time": 2,
      "mm_hidden_size": 64)"));
  EXPECT_EQ(own.hidden, 64);
  EXPECT_EQ(own.layers, 3);
  EXPECT_EQ(released.hidden, own.hidden);
  EXPECT_EQ(released.intermediate, own.intermediate);
  EXPECT_EQ(released.layers, own.layers);
  EXPECT_EQ(released.heads, own.heads);
  EXPECT_EQ(released.table_rows, own.table_rows);
  EXPECT_EQ(released.table_cols, own.table_cols);
  EXPECT_EQ(released.table_times, own.table_times);
}

TEST(KimiK25Configs, TheLanguageModelIsDeepseekV3UnlessItNamesAnother) {
  const std::string text = R"("n_routed_experts": 384, "num_attention_heads": 64, "num_key_value_heads": 64,
      "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "vocab_size": 163840)";
  const auto whole = [&](const std::string& type) {
    return parameters(model("", R"("tie_word_embeddings": false, "text_config": {)" + type + text + "}"));
  };
  EXPECT_EQ(whole(R"("model_type": "kimi_k2", )"), 1026879353328);
  EXPECT_EQ(whole(""), whole(R"("model_type": "deepseek_v3", )"));
  EXPECT_EQ(whole(""), whole(R"("model_type": "kimi_k2", )"));
  const Vlm m = read(model("", R"("text_config": {"model_type": "kimi_k2"})"));
  EXPECT_EQ(m.text.type, "deepseek_v3");
}

TEST(KimiK25Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 7)")), "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("vt_num_attention_heads": 7)")), "config.json.vision_config.vt_num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 576)")), "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("merge_kernel_size": [2, 3])")), "config.json.vision_config.merge_kernel_size");
  EXPECT_EQ(refused_at(model(R"("pos_emb_width": 63)")), "config.json.vision_config.pos_emb_width");
  EXPECT_EQ(refused_at(model(R"("hidden_size": 576)")), "config.json.projection_hidden_size");
}

TEST(KimiK25Configs, TheProcessorsFileSetsItsLimits) {
  const auto tokens = [](const char* file) {
    Vlm m = read(R"({"model_type": "kimi_k25"})");
    EXPECT_TRUE(json::read_processor(nlohmann::json::parse(file), "p", json::ProcessorFile::preprocessor, m).empty());
    return layout(m.image_processor, ImageSize{1400, 1400}).llm_tokens;
  };
  EXPECT_EQ(tokens("{}"), 50 * 50);
  EXPECT_EQ(tokens(R"({"media_proc_cfg": {"in_patch_limit": 4096}})"), 50 * 50);  // of the checkpoint's own code
  EXPECT_EQ(tokens(R"({"max_patches": 5000})"), 36 * 36);
  EXPECT_EQ(tokens(R"({"size": {"max_height": 50, "max_width": 50}})"), 25 * 25);
  Vlm m = read(R"({"model_type": "kimi_k25"})");
  EXPECT_THROW(json::read_processor(nlohmann::json::parse(R"({"size": {"max_height": 50, "max_width": 40}})"), "p",
                                    json::ProcessorFile::preprocessor, m),
               Error);
}

}  // namespace
}  // namespace vlmest::kimi_k25_configs_test
