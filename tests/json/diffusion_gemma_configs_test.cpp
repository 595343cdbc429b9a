// SPDX-License-Identifier: Apache-2.0
// DiffusionGemma's configs: weights as transformers 5.17 names and shapes them, what absent keys mean, what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/diffusion_gemma/family.hpp>
#include <vlmest/nn/image_processor/gemma4.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::diffusion_gemma_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

TEST(DiffusionGemmaConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("diffusion_gemma.json"), 11);
}

const std::string experts = R"("num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 24)";
const std::string small = experts + R"(, "num_hidden_layers": 2, "vocab_size": 100, "hidden_size": 64)";

std::string model(const std::string& text, const std::string& vision = "", const std::string& rest = "") {
  return R"({"model_type": "diffusion_gemma", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}" +
         (rest.empty() ? "" : ", ") + rest + "}";
}
const DiffusionGemmaFamily& family(const Vlm& v) { return get<DiffusionGemmaFamily>(v.family); }

TEST(DiffusionGemmaConfigs, AbsentKeysAreTheClassesOwn) {
  const Vlm v = read(model(experts));
  const DiffusionGemmaFamily& f = family(v);
  EXPECT_EQ(f.canvas, 256);
  EXPECT_TRUE(f.tied);
  EXPECT_EQ(f.language.window, 512);
  EXPECT_EQ(f.language.full_kv_heads, 4);
  EXPECT_EQ(f.language.full_head_dim, 512);
  EXPECT_FALSE(f.language.blocks_of_images);
  EXPECT_EQ(v.text.type, "diffusion_gemma_text");
}

// The class has no attention_k_eq_v: keys are the values of full layers whatever it says.
TEST(DiffusionGemmaConfigs, FullLayersTakeTheirOwnHeadsWhateverKeysAndValuesSay) {
  for (const char* said : {"", R"(, "attention_k_eq_v": false)", R"(, "attention_k_eq_v": true)"}) {
    const Vlm v = read(model(experts + R"(, "num_global_key_value_heads": 2)" + said));
    EXPECT_EQ(family(v).language.full_kv_heads, 2);
    EXPECT_TRUE(family(v).language.keys_as_values);
  }
}

// Biases are no part of what both stacks share.
TEST(DiffusionGemmaConfigs, UntyingGivesTheDecoderItsOwnWeights) {
  const std::string untied = R"("tie_word_embeddings": false)";
  const std::int64_t one = parameters(model(small)), two = parameters(model(small, "", untied));
  const std::int64_t biased = parameters(model(small + R"(, "attention_bias": true)")),
                     both = parameters(model(small + R"(, "attention_bias": true)", "", untied));
  EXPECT_GT(two, one);
  EXPECT_EQ(both - two, biased - one) << "each stack has biases of its own, tied or not";
  EXPECT_EQ(parameters(model(small + ", " + untied)), one) << "the key of the text part ties nothing";
}

TEST(DiffusionGemmaConfigs, ItsProcessorIsGemma4s) {
  const Vlm v = read(model(experts, R"("patch_size": 14, "pooling_kernel_size": 2)"));
  const auto* rule = get_if<image_processor::Gemma4>(&v.image_processor);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->patch_size, 14);
  EXPECT_EQ(rule->pool, 2);
  EXPECT_EQ(layout(read(model(experts)).image_processor, {768, 1024}).llm_tokens, 266);
}

TEST(DiffusionGemmaConfigs, WhatCannotRunIsRefused) {
  const std::string text = "config.json.text_config.";
  EXPECT_EQ(refused_at(model(experts)), "accepted");
  EXPECT_EQ(refused_at(model("")), text + "moe_intermediate_size");
  EXPECT_EQ(refused_at(model(R"("num_experts": 4, "top_k_experts": 5, "moe_intermediate_size": 8)")),
            text + "top_k_experts");
  EXPECT_EQ(refused_at(model(experts + R"(, "use_bidirectional_attention": "all")")),
            text + "use_bidirectional_attention");
  EXPECT_EQ(refused_at(model(experts + R"(, "final_logit_softcapping": null)")), text + "final_logit_softcapping");
  EXPECT_EQ(refused_at(model(experts + R"(, "num_global_key_value_heads": 3)")), text + "num_global_key_value_heads");
  EXPECT_EQ(refused_at(model(experts + R"(, "per_layer_config": {})")), text + "per_layer_config");
  EXPECT_EQ(refused_at(model(experts + R"(, "global_head_dim": 33)")), text + "global_head_dim");
  EXPECT_EQ(refused_at(model(experts + R"(, "model_type": "gemma4_text")")), text + "model_type");
  EXPECT_EQ(refused_at(model(experts, R"("model_type": "siglip_vision_model")")),
            "config.json.vision_config.model_type");
  EXPECT_EQ(refused_at(model(experts, "", R"("canvas_length": null)")), "config.json.canvas_length");
  EXPECT_EQ(refused_at(model(experts, "", R"("canvas_length": 0)")), "config.json.canvas_length");
  EXPECT_EQ(refused_at(R"({"model_type": "diffusion_gemma", "text_config": {)" + experts + "}}"),
            "config.json.vision_config");
}

}  // namespace
}  // namespace vlmest::diffusion_gemma_configs_test
