// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/gemma3n/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::gemma3n_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& text, const std::string& vision = {}, const std::string& audio = {},
                  const std::string& more = {}) {
  return R"({"model_type": "gemma3n", "text_config": {)" + text + R"(}, "vision_config": {)" + vision +
         R"(}, "audio_config": {)" + audio + "}" + (more.empty() ? "" : ", " + more) + "}";
}
Gemma3nFamily family(const std::string& json) { return get<Gemma3nFamily>(test::read(json).family); }
/// A text of layers that need no list: none of them shares keys.
std::string layers(int n, const std::string& more = {}) {
  return R"("num_kv_shared_layers": 0, "num_hidden_layers": )" + std::to_string(n) + (more.empty() ? "" : ", " + more);
}

TEST(Gemma3nConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("gemma3n.json"), 6);
}

// Gemma3nTextConfig.__post_init__.
TEST(Gemma3nConfigs, AbsentListsFollowTheNumberOfLayers) {
  const Gemma3nTextConfig few = family(model(layers(10))).language, many = family(model(layers(11))).language;
  EXPECT_EQ(std::count(few.sparse.begin(), few.sparse.end(), true), 0);
  EXPECT_EQ(std::count(many.sparse.begin(), many.sparse.end(), true), 10);
  EXPECT_FALSE(many.slides(4));
  EXPECT_FALSE(many.slides(9));
  EXPECT_TRUE(many.slides(10));
  EXPECT_EQ(many.inner, std::vector<std::int64_t>(11, 16384));
}

TEST(Gemma3nConfigs, PartsThatAreMissingAreTheirClassesDefaults) {
  const Gemma3nFamily f = family(R"({"model_type": "gemma3n"})");
  EXPECT_EQ(f.language.layers, 35);
  EXPECT_EQ(f.audio.layers, 12);
  EXPECT_TRUE(f.tied);
}

TEST(Gemma3nConfigs, TheActiveCopyMayCountFromTheEnd) {
  EXPECT_EQ(family(model(layers(1, R"("altup_active_idx": -1)"))).language.active, 3);
}

TEST(Gemma3nConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model("")), "accepted");
  const std::string text = "config.json.text_config.", vision = "config.json.vision_config.",
                    audio = "config.json.audio_config.";
  EXPECT_EQ(refused_at(model(R"("num_kv_shared_layers": 35)")), text + "num_kv_shared_layers");
  EXPECT_EQ(refused_at(model(R"("num_hidden_layers": 2, "num_kv_shared_layers": 1,
                                "layer_types": ["sliding_attention", "full_attention"])")),
            text + "num_kv_shared_layers");
  EXPECT_EQ(refused_at(model(layers(2, R"("intermediate_size": [10])"))), text + "intermediate_size");
  EXPECT_EQ(refused_at(model(layers(2, R"("activation_sparsity_pattern": [0.5])"))),
            text + "activation_sparsity_pattern");
  EXPECT_EQ(refused_at(model(layers(1, R"("activation_sparsity_pattern": [1.5])"))),
            text + "activation_sparsity_pattern");
  EXPECT_EQ(refused_at(model(R"("activation_sparsity_pattern": 0.95)")), text + "activation_sparsity_pattern");
  EXPECT_EQ(refused_at(model(R"("altup_active_idx": 4)")), text + "altup_active_idx");
  EXPECT_EQ(refused_at(model(R"("altup_coef_clip": null)")), text + "altup_coef_clip");
  EXPECT_EQ(refused_at(model(R"("final_logit_softcapping": null)")), text + "final_logit_softcapping");
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 6)")), text + "num_attention_heads");
  EXPECT_EQ(refused_at(model(R"("hidden_size_per_layer_input": 0)")), text + "hidden_size_per_layer_input");
  EXPECT_EQ(refused_at(model(R"("rope_parameters": {"full_attention": {"rope_type": "dynamic"}})")),
            text + "rope_parameters.full_attention.rope_type");
  EXPECT_EQ(refused_at(model(R"("rope_scaling": {"rope_type": "longrope"})")), text + "rope_scaling.rope_type");
  EXPECT_EQ(refused_at(model(R"("model_type": "gemma3_text")")), text + "model_type");
  EXPECT_EQ(refused_at(model("", R"("architecture": "mobilenetv5_base")")), vision + "architecture");
  EXPECT_EQ(refused_at(model("", R"("model_args": {"stem_size": 32})")), vision + "model_args");
  EXPECT_EQ(refused_at(model("", R"("hidden_size": 1024)")), vision + "hidden_size");
  EXPECT_EQ(refused_at(model("", R"("hidden_size": 1024)", "", R"("vision_soft_tokens_per_image": 512)")), "accepted");
  EXPECT_EQ(refused_at(model("", "", R"("conf_num_attention_heads": 7)")), audio + "conf_num_attention_heads");
  EXPECT_EQ(refused_at(model("", "", R"("hidden_size": 15, "conf_num_attention_heads": 3)")), audio + "hidden_size");
  EXPECT_EQ(refused_at(model("", "", R"("sscp_conv_kernel_size": [[3, 3]])")), audio + "sscp_conv_kernel_size");
  EXPECT_EQ(refused_at(model("", "", R"("sscp_conv_kernel_size": [[3, 131], [3, 3]])")),
            audio + "sscp_conv_kernel_size");
  EXPECT_EQ(refused_at(model("", "", R"("sscp_conv_stride_size": [[2, 0], [2, 2]])")), audio + "sscp_conv_stride_size");
}

// A tower that leaves more features than a clip has tokens: the model would be asked for less than nothing to fill up.
TEST(Gemma3nConfigs, ClipsThatOverflowTheirTokensAreRefused) {
  const Vlm vlm = test::read(model("", "", "", R"("audio_soft_tokens_per_image": 100)"));
  EXPECT_EQ(audio_layout(vlm.audio, {15}).llm_tokens, 100);
  EXPECT_THROW(audio_layout(vlm.audio, {20}), Error);
}

TEST(Gemma3nConfigs, ProcessorsMustAgreeWithTheConfig) {
  const auto read = [](const char* keys) {
    Vlm m = test::read(R"({"model_type": "gemma3n"})");
    json::read_processor(nlohmann::json::parse(keys), "processor_config.json", json::ProcessorFile::processor, m);
    return m;
  };
  EXPECT_THROW(read(R"({"image_seq_length": 128})"), Error);
  EXPECT_THROW(read(R"({"audio_seq_length": 187})"), Error);
  EXPECT_THROW(read(R"({"feature_extractor": {"feature_size": 80}})"), Error);
  const Vlm m = read(R"({"image_seq_length": 256, "audio_seq_length": 188,
                         "feature_extractor": {"feature_size": 128, "frame_length_ms": 20.0}})");
  EXPECT_EQ(audio_layout(m.audio, {1}).row_frames, 98);  // (16000 - 321) / 160 + 1
}

}  // namespace
}  // namespace vlmest::gemma3n_configs_test
