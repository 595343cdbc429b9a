// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/gemma3/family.hpp>
#include <vlmest/family/paligemma/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::gemma_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

const std::string so400m = R"("hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
  "num_attention_heads": 16, "patch_size": 14, "vision_use_head": false, "model_type": "siglip_vision_model")";
std::string pali(const std::string& text, const std::string& keys, int side = 224) {
  return R"({"model_type": "paligemma", "vision_config": {)" + so400m + R"(, "image_size": )" + std::to_string(side) +
         R"(}, "text_config": {)" + text + "}, " + keys + "}";
}
std::string gemma3(const std::string& text, const std::string& keys = R"("mm_tokens_per_image": 256)") {
  return R"({"model_type": "gemma3", "vision_config": {)" + so400m + R"(, "image_size": 896}, "text_config": {)" +
         text + "}, " + keys + "}";
}

// The published parameter counts of the checkpoints; tied weights count once.
TEST(GemmaConfigs, CountThePublishedModels) {
  EXPECT_EQ(parameters(pali(R"("hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
    "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257216)",
                            R"("projection_dim": 2048)", 448)),
            2924351216);
  EXPECT_EQ(parameters(pali(R"("model_type": "gemma2", "vocab_size": 257216)", R"("projection_dim": 2304)")),
            3032242416);
  EXPECT_EQ(parameters(pali(
                R"("model_type": "gemma2", "hidden_size": 4608, "intermediate_size": 36864, "num_hidden_layers": 46,
    "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 257216)",
                R"("projection_dim": 4608)")),
            27650487024);
  EXPECT_EQ(parameters(gemma3(
                R"("hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024)")),
            4300079472);
  EXPECT_EQ(parameters(gemma3(R"("hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62,
    "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128)")),
            27432406640);
}

GemmaConfig language(const std::string& text) {
  const Vlm v = read(text);
  if (const auto* g = get_if<Gemma3Family>(&v.family)) return g->language;
  return get<PaliGemmaFamily>(v.family).language;
}

TEST(GemmaConfigs, LayersSlideByPatternOrByName) {
  EXPECT_EQ(language(gemma3(R"("num_hidden_layers": 7)")).sliding,
            (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_EQ(language(gemma3(R"("num_hidden_layers": 3, "sliding_window_pattern": 2)")).sliding,
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(
      language(gemma3(R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"])")).sliding,
      (std::vector<bool>{false, true}));
  const GemmaConfig two =
      language(pali(R"("model_type": "gemma2", "num_hidden_layers": 3)", R"("projection_dim": 2304)"));
  EXPECT_EQ(two.sliding, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(two.window, 4096);
  EXPECT_TRUE(two.softcap);
  EXPECT_TRUE(language(pali("", R"("projection_dim": 3072)")).sliding.empty());
}

TEST(GemmaConfigs, ABidirectionalTextModelHalvesItsWindow) {
  EXPECT_EQ(language(gemma3(R"("sliding_window": 1024)")).window, 1024);
  EXPECT_EQ(language(gemma3(R"("sliding_window": 1024, "use_bidirectional_attention": true)")).window, 513);
}

TEST(GemmaConfigs, PaliGemmaHasDefaultsOfItsOwn) {
  const Vlm v = read(R"({"model_type": "paligemma"})");
  const auto& f = get<PaliGemmaFamily>(v.family);
  EXPECT_EQ(f.language.vocab, 257152);
  EXPECT_EQ(f.language.layers, 18);
  EXPECT_EQ(f.language.kv_heads, 1);
  EXPECT_FALSE(f.language.causal);
  EXPECT_EQ(f.vision.hidden, 1152);
  EXPECT_FALSE(f.vision.head);
  EXPECT_TRUE(f.tied);
  EXPECT_FALSE(f.placeholder_outside);
  EXPECT_TRUE(get<PaliGemmaFamily>(read(R"({"model_type": "paligemma", "image_token_index": 257152})").family)
                  .placeholder_outside);
}

TEST(GemmaConfigs, RefuseWhatCannotRun) {
  EXPECT_EQ(refused_at(pali("", R"("projection_dim": 2048)")), "config.json.projection_dim");
  EXPECT_EQ(refused_at(pali(R"("model_type": "llama")", R"("projection_dim": 4096)")),
            "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(pali(R"("num_attention_heads": 16, "num_key_value_heads": 3)", R"("projection_dim": 3072)")),
            "config.json.text_config.num_key_value_heads");
  EXPECT_EQ(refused_at(R"({"model_type": "paligemma", "vision_config": {"model_type": "clip_vision_model"}})"),
            "config.json.vision_config.model_type");
  EXPECT_EQ(refused_at(gemma3(R"("sliding_window": null)")), "config.json.text_config.sliding_window");
  EXPECT_EQ(refused_at(gemma3(R"("num_attention_heads": 10, "num_key_value_heads": 5)")),
            "config.json.text_config.num_attention_heads");
  EXPECT_EQ(refused_at(gemma3(R"("num_hidden_layers": 2, "layer_types": ["full_attention"])")),
            "config.json.text_config.layer_types");
  EXPECT_EQ(refused_at(gemma3("", R"("mm_tokens_per_image": 5000)")), "config.json.mm_tokens_per_image");
  EXPECT_EQ(refused_at(gemma3("", R"("mm_tokens_per_image": 200)")), "config.json.mm_tokens_per_image");
  EXPECT_EQ(refused_at(R"({"model_type": "gemma3"})"), "config.json.mm_tokens_per_image");
}

TEST(ShieldGemma2Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("shieldgemma2.json"), 3);
}

}  // namespace
}  // namespace vlmest::gemma_configs_test
