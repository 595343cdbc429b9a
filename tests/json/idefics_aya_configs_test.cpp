// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/aya_vision/family.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "config_support.hpp"

namespace vlmest::idefics_aya_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string model(const std::string& type, const std::string& vision, const std::string& text,
                  const std::string& keys) {
  return R"({"model_type": ")" + type + R"(", "vision_config": {)" + vision + R"(}, "text_config": {)" + text + "}" +
         (keys.empty() ? "" : ", " + keys) + "}";
}

const std::string so400m = R"("hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
  "num_attention_heads": 16, "patch_size": 14, "image_size": 364)";
const std::string aya_tower = so400m + R"(, "vision_use_head": false)";
const std::string smol_tower = R"("hidden_size": 768, "num_attention_heads": 12, "image_size": 512, "patch_size": 16)";

// The published parameter counts of the checkpoints; tied weights count once.
TEST(IdeficsConfigs, CountThePublishedModels) {
  const std::string llama3 = R"("hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128259)";
  EXPECT_EQ(parameters(model("idefics3", so400m, llama3, "")), 8462086384);
  const std::string smol = R"("hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49280)";
  const std::string shuffle = R"("scale_factor": 4)";
  EXPECT_EQ(parameters(model("idefics3", smol_tower, smol, shuffle)), 256484928);
  EXPECT_EQ(parameters(model("smolvlm", smol_tower, smol, shuffle)), 256484928);
  EXPECT_EQ(parameters(model("smolvlm", smol_tower, smol, shuffle + R"(, "tie_word_embeddings": true)")),
            256484928 - 49280 * 576);
}
TEST(AyaVisionConfigs, CountThePublishedModels) {
  EXPECT_EQ(parameters(model("aya_vision", aya_tower, R"("hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8)",
                             R"("alignment_intermediate_size": 28672)")),
            8631842032);
  EXPECT_EQ(parameters(model("aya_vision", aya_tower, R"("model_type": "cohere", "intermediate_size": 24576,
    "num_key_value_heads": 8)",
                             R"("alignment_intermediate_size": 49152)")),
            33137288432);
}

TEST(AyaVisionConfigs, EveryFourthLayerIsFull) {
  const Vlm vlm = read(model("aya_vision", aya_tower, R"("num_hidden_layers": 8)", ""));
  const Cache cache = make_cache(get<AyaVisionFamily>(vlm.family).language);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(cache.layers[i].window.has_value(), i % 4 != 3) << i;
  EXPECT_EQ(cache.layers[0].window, 4096);
}

TEST(IdeficsConfigs, RefuseWhatCannotRun) {
  EXPECT_EQ(refused_at(model("idefics3", so400m, "", R"("scale_factor": 3)")), "config.json.scale_factor");
  EXPECT_EQ(refused_at(model("idefics3", so400m, "", R"("scale_factor": 0)")), "config.json.scale_factor");
  EXPECT_EQ(refused_at(model("smolvlm", R"("num_attention_heads": 7)", "", "")),
            "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(model("smolvlm", R"("patch_size": 1000)", "", "")), "config.json.vision_config.patch_size");
}
TEST(AyaVisionConfigs, RefuseWhatCannotRun) {
  auto aya = [](const std::string& text, const std::string& keys) {
    return model("aya_vision", aya_tower, text, keys);
  };
  EXPECT_EQ(refused_at(R"({"model_type": "aya_vision"})"), "config.json.vision_config");
  EXPECT_EQ(refused_at(aya("", R"("downsample_factor": 3)")), "config.json.downsample_factor");
  EXPECT_EQ(refused_at(aya("", R"("alignment_intermediate_size": 4097)")), "config.json.alignment_intermediate_size");
  EXPECT_EQ(refused_at(aya("", R"("vision_feature_layer": [-1, -2])")), "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(aya("", R"("vision_feature_layer": 28)")), "config.json.vision_feature_layer");
  EXPECT_EQ(refused_at(aya("", R"("vision_feature_select_strategy": "default")")),
            "config.json.vision_feature_select_strategy");
  EXPECT_EQ(refused_at(aya(R"("sliding_window": null)", "")), "config.json.text_config.sliding_window");
  EXPECT_EQ(refused_at(aya(R"("layer_types": ["full_attention"])", "")), "config.json.text_config.layer_types");
  EXPECT_EQ(refused_at(aya(R"("num_hidden_layers": 1, "layer_types": ["sliding"])", "")),
            "config.json.text_config.layer_types");
  EXPECT_EQ(refused_at(aya(R"("num_attention_heads": 48)", "")), "config.json.text_config.num_attention_heads");
}

// A picture of thirteen tiles is thirteen pictures to the tower; both profiles build, with and without pictures.
TEST(IdeficsFamily, TilesAreImages) {
  for (const char* type : {"idefics3", "smolvlm"}) {
    const Vlm vlm = read(model(type, smol_tower, R"("num_hidden_layers": 2)", R"("scale_factor": 4)"));
    for (const Runtime runtime : runtimes) {
      Plan plan;
      plan.runtime = runtime;
      plan.image_height = 480;
      plan.image_width = 640;
      for (std::int64_t images : {0, 1}) {
        plan.images = images;
        Builder b;
        Context c{b, plan, stack_of(plan)};
        const Sequences s = make_sequences(vlm, plan);
        build_inference(c, vlm, s, s.seq + 1);
        bool found = false;
        for (const auto& t : b.graph.tensors) found = found || t.shape == Shape{1, 13, 3, 512, 512};
        EXPECT_EQ(found, images == 1) << type;
      }
    }
  }
}

}  // namespace
}  // namespace vlmest::idefics_aya_configs_test
