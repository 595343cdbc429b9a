// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/idefics2/family.hpp>
#include <vlmest/family/idefics2/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::idefics2_configs_test {
namespace {

using test::read;
using test::refused_at;

std::string model(const std::string& perceiver, const std::string& text = "", const std::string& vision = "") {
  return R"({"model_type": "idefics2", "perceiver_config": {)" + perceiver + R"(}, "text_config": {)" + text +
         R"(}, "vision_config": {)" + vision + "}}";
}

TEST(Idefics2Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("idefics2.json"), 6);
}

// Idefics2Config.__post_init__ gives the resampler the language model's width.
TEST(Idefics2Configs, TheResamplerIsAsWideAsTheLanguageModel) {
  const Vlm v = read(model(R"("hidden_size": 512)", R"("hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 300, "hidden_act": "gelu")"));
  const Idefics2Projector& p = get<Idefics2Family>(v.family).projector;
  EXPECT_EQ(p.out, 256);
  EXPECT_EQ(p.intermediate, 300);
  EXPECT_EQ(p.activation, Activation::gelu);
  EXPECT_EQ(p.resampler_activation, Activation::silu);
}

TEST(Idefics2Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model("")), "accepted");
  EXPECT_EQ(refused_at(R"({"model_type": "idefics2", "perceiver_config": null, "text_config": null})"), "accepted");
  EXPECT_EQ(refused_at(model(R"("num_key_value_heads": 3)")), "config.json.perceiver_config.num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("num_key_value_heads": 32)")), "config.json.perceiver_config.num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("resampler_depth": 0)")), "config.json.perceiver_config.resampler_depth");
  EXPECT_EQ(refused_at(model(R"("resampler_n_latents": 0)")), "config.json.perceiver_config.resampler_n_latents");
  EXPECT_EQ(refused_at(model(R"("attention_dropout": 2)")), "config.json.perceiver_config.attention_dropout");
  EXPECT_EQ(refused_at(model("", R"("model_type": "gemma")")), "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(model("", "", R"("patch_size": 300)")), "config.json.vision_config.patch_size");
}

// Without a file pictures are split, as the released processors do; a file is the class's, which does not.
TEST(Idefics2Configs, TheProcessorsFileDecides) {
  const auto tokens = [](const char* file, json::ProcessorFile which = json::ProcessorFile::preprocessor) {
    Vlm v = read(model("", "", R"("patch_size": 14, "image_size": 980)"));
    if (file != nullptr) json::read_processor(nlohmann::json::parse(file), "p", which, v);
    const ImageLayout l = layout(v.image_processor, {2000, 1000});
    return std::pair{l.llm_tokens, l.resized.height};
  };
  EXPECT_EQ(tokens(nullptr), (std::pair<std::int64_t, std::int64_t>{320, 980}));
  EXPECT_EQ(tokens("{}"), (std::pair<std::int64_t, std::int64_t>{64, 980}));
  EXPECT_EQ(tokens(R"({"do_image_splitting": true, "size": {"shortest_edge": 100, "longest_edge": 700}})"),
            (std::pair<std::int64_t, std::int64_t>{320, 700}));
  EXPECT_THROW(tokens(R"({"size": {"longest_edge": 700}})"), Error);
  EXPECT_THROW(tokens(R"({"size": {"height": 700, "width": 700}})"), Error);
  EXPECT_THROW(tokens(R"({"do_pad": false})"), Error);
  EXPECT_THROW(tokens(R"({"image_seq_len": 32})", json::ProcessorFile::processor), Error);
}

}  // namespace
}  // namespace vlmest::idefics2_configs_test
