// SPDX-License-Identifier: Apache-2.0
// Gemma 4's configs: weights as transformers 5.17 names and shapes them, what absent keys mean, what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/gemma4/unified.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::gemma4_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

TEST(Gemma4Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("gemma4.json"), 8);
}

std::string vlm(const std::string& text, const std::string& vision = "", const std::string& rest = "") {
  return R"({"model_type": "gemma4", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}" + rest + "}";
}
std::string unified(const std::string& text, const std::string& vision = "", const std::string& rest = "") {
  return R"({"model_type": "gemma4_unified", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}" +
         rest + "}";
}
const Gemma4TextConfig& language(const Vlm& v) { return get<Gemma4Family>(v.family).language; }

TEST(Gemma4Configs, EverySixthLayerIsFullAndTheLastAlways) {
  const Gemma4TextConfig six = language(read(vlm(R"("num_hidden_layers": 8)")));
  EXPECT_EQ(six.sliding, (std::vector<bool>{true, true, true, true, true, false, true, false}));
  const Gemma4TextConfig named =
      language(read(vlm(R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"])")));
  EXPECT_EQ(named.sliding, (std::vector<bool>{false, false}));
}

TEST(Gemma4Configs, TheLastLayersOfATypeLendTheirKeys) {
  const Gemma4TextConfig g = language(read(vlm(
      R"("num_hidden_layers": 5, "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention",
         "sliding_attention", "sliding_attention", "full_attention"])")));
  EXPECT_FALSE(g.lends(0));
  EXPECT_TRUE(g.lends(1));
  EXPECT_TRUE(g.lends(2));
  EXPECT_TRUE(g.shares(3) && g.shares(4));
  EXPECT_EQ(make_cache(g).layers.size(), 3u);
}

TEST(Gemma4Configs, HeadsOfFullLayersAreTheirOwn) {
  const Gemma4TextConfig plain = language(read(vlm(R"("num_global_key_value_heads": 2)")));
  EXPECT_EQ(plain.full_kv_heads, plain.kv_heads) << "the key counts where keys are values alone";
  EXPECT_EQ(plain.full_head_dim, 512);
  const Gemma4TextConfig both =
      language(read(vlm(R"("attention_k_eq_v": true, "num_global_key_value_heads": 2, "global_head_dim": 384)")));
  EXPECT_EQ(both.full_kv_heads, 2);
  EXPECT_EQ(both.full_head_dim, 384);
}

TEST(Gemma4Configs, AudioIsLoadedWhereTheConfigHasIt) {
  const std::string text = R"("num_hidden_layers": 2, "vocab_size": 100, "vocab_size_per_layer_input": 100)";
  const std::int64_t without = parameters(vlm(text));
  EXPECT_EQ(parameters(vlm(text, "", R"(, "audio_config": null)")), without);
  EXPECT_GT(parameters(vlm(text, "", R"(, "audio_config": {})")), without + 300'000'000);
  const std::string plain = R"("num_hidden_layers": 2, "vocab_size": 100)";
  EXPECT_EQ(
      parameters(unified(plain, "", R"(, "audio_config": {"audio_embed_dim": 320})")) - parameters(unified(plain)),
      320 * 2304);
}

TEST(Gemma4Configs, BothTypesHaveTheirOwnDefaults) {
  const Vlm large = read(unified(""));
  const Gemma4TextConfig& t = get<Gemma4UnifiedFamily>(large.family).language;
  EXPECT_EQ(t.window, 1024);
  EXPECT_EQ(t.per_layer, 0);
  EXPECT_TRUE(t.blocks_of_images);
  EXPECT_FALSE(language(read(vlm(""))).blocks_of_images);
  EXPECT_EQ(language(read(vlm(R"("hidden_size_per_layer_input": null)"))).per_layer, 0);
}

TEST(Gemma4Configs, TheProcessorsBudgetIsRead) {
  Vlm v = read(vlm(""));
  const auto with = [&](const char* text) {
    Vlm changed = v;
    json::read_processor(nlohmann::json::parse(text), "file", json::ProcessorFile::preprocessor, changed);
    return layout(changed.image_processor, {768, 1024}).llm_tokens;
  };
  EXPECT_EQ(layout(v.image_processor, {768, 1024}).llm_tokens, 266);
  EXPECT_EQ(with(R"({"max_soft_tokens": 70})"), 63);
  EXPECT_EQ(with(R"({"max_soft_tokens": 280, "image_seq_length": 70})"), 266);
  EXPECT_THROW(with(R"({"max_soft_tokens": 100})"), Error);
  EXPECT_THROW(with(R"({"patch_size": 14})"), Error);
  EXPECT_THROW(with(R"({"do_resize": false})"), Error);
}

TEST(Gemma4Configs, WrongValuesAreRefusedWhereTheyStand) {
  const std::string text = "config.json.text_config.", vision = "config.json.vision_config.";
  EXPECT_EQ(refused_at(vlm("")), "accepted");
  EXPECT_EQ(refused_at(unified("")), "accepted");
  EXPECT_EQ(refused_at(R"({"model_type": "gemma4", "text_config": {}})"), "config.json.vision_config");
  EXPECT_EQ(refused_at(vlm(R"("model_type": "gemma3_text")")), text + "model_type");
  EXPECT_EQ(refused_at(vlm(R"("per_layer_config": {"0": {"head_dim": 64}})")), text + "per_layer_config");
  EXPECT_EQ(refused_at(vlm(R"("num_kv_shared_layers": 30)")), text + "num_kv_shared_layers");
  EXPECT_EQ(refused_at(vlm(R"("num_hidden_layers": 6, "num_kv_shared_layers": 1)")), text + "num_kv_shared_layers");
  EXPECT_EQ(refused_at(vlm(R"("use_bidirectional_attention": "all")")), text + "use_bidirectional_attention");
  EXPECT_EQ(refused_at(vlm(R"("attention_k_eq_v": true, "num_global_key_value_heads": 3)")),
            text + "num_global_key_value_heads");
  EXPECT_EQ(refused_at(vlm(R"("global_head_dim": 511)")), text + "global_head_dim");
  EXPECT_EQ(refused_at(vlm(R"("sliding_window": null)")), text + "sliding_window");
  EXPECT_EQ(refused_at(vlm(R"("layer_types": ["full_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(vlm(R"("enable_moe_block": true, "top_k_experts": 2, "moe_intermediate_size": 8)")),
            text + "num_experts");
  EXPECT_EQ(refused_at(vlm(R"("enable_moe_block": true, "num_experts": 2, "top_k_experts": 3,
                               "moe_intermediate_size": 8)")),
            text + "top_k_experts");
  EXPECT_EQ(refused_at(vlm(R"("rope_parameters": {"sliding_attention": {"rope_type": "default"}})")),
            text + "rope_parameters.full_attention");
  EXPECT_EQ(
      refused_at(vlm(R"("rope_parameters": {"sliding_attention": {}, "full_attention": {"rope_type": "dynamic"}})")),
      text + "rope_parameters.full_attention.rope_type");
  EXPECT_EQ(refused_at(vlm("", R"("head_dim": 66)")), vision + "head_dim");
  EXPECT_EQ(refused_at(vlm("", R"("pooling_kernel_size": 1)")), vision + "pooling_kernel_size");
  EXPECT_EQ(refused_at(vlm("", R"("rope_parameters": {"rope_type": "linear"})")), vision + "rope_parameters.rope_type");
  EXPECT_EQ(refused_at(vlm("", "", R"(, "audio_config": {"subsampling_conv_channels": [128]})")),
            "config.json.audio_config.subsampling_conv_channels");
  EXPECT_EQ(refused_at(unified("", R"("mm_embed_dim": 100)")), vision + "output_proj_dims");
}

}  // namespace
}  // namespace vlmest::gemma4_configs_test
