// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/molmo2/family.hpp>
#include <vlmest/family/molmo2/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::molmo2_configs_test {
namespace {

using test::refused_at;
using Norm = Molmo2Text::QkNorm;

/// Of further keys of its parts and outside.
std::string model(const std::string& vision = {}, const std::string& adapter = {}, const std::string& text = {},
                  const std::string& outside = {}) {
  const auto more = [](const std::string& keys) { return keys.empty() ? "" : ", " + keys; };
  return R"({"model_type": "molmo2", "vit_config": {"image_num_pos": 729)" + more(vision) +
         R"(}, "adapter_config": {"hidden_act": "silu")" + more(adapter) +
         R"(}, "text_config": {"model_type": "molmo2_text")" + more(text) + "}" + more(outside) + "}";
}
Molmo2Family family(const std::string& json) { return get<Molmo2Family>(test::read(json).family); }

TEST(Molmo2Configs, WeightsHaveTheNamesAndShapesOfTheCode) {
  EXPECT_EQ(test::expect_recorded_parameters("molmo2.json"), 14);
}

TEST(Molmo2Configs, DefaultsAreThoseOfTheConfigClasses) {
  const Molmo2Family f = family(model());
  EXPECT_EQ(f.vision.read, (std::vector<std::int64_t>{24, 18}));
  EXPECT_EQ(f.vision.made(), 25);
  EXPECT_EQ(f.adapter.attention.in, 2304);
  EXPECT_FALSE(f.adapter.masked);
  EXPECT_TRUE(f.language.qkv_bias);
  EXPECT_TRUE(f.vision.attention.wide);
  EXPECT_FALSE(family(model("", "", R"("qkv_bias": null)")).language.qkv_bias) << "Python's None is false";
  EXPECT_FALSE(family(model(R"("float32_attention": null)")).vision.attention.wide);
  EXPECT_EQ(f.language.qk_norm, Norm::off);
  EXPECT_FALSE(f.language.two_ropes);
}

TEST(Molmo2Configs, NormsOfQueriesAndKeysGoByTheirType) {
  EXPECT_EQ(family(model("", "", R"("use_qk_norm": true, "qk_norm_type": "qwen3")")).language.qk_norm, Norm::heads);
  EXPECT_EQ(family(model("", "", R"("use_qk_norm": true, "qk_norm_type": "olmo")")).language.qk_norm, Norm::whole);
  EXPECT_EQ(family(model("", "", R"("qk_norm_type": "qwen3")")).language.qk_norm, Norm::off);
}

TEST(Molmo2Configs, ScaledAnglesAreOfTheLayersThatAreNamed) {
  const Molmo2Text t =
      family(model("", "",
                   R"("num_hidden_layers": 4, "rope_scaling": {"rope_type": "yarn"}, "rope_scaling_layers": [1, 3])"))
          .language;
  EXPECT_TRUE(t.two_ropes);
  EXPECT_EQ(t.scaled, (std::vector<bool>{false, true, false, true}));
}

TEST(Molmo2Configs, WhatWasNotComparedIsRefused) {
  EXPECT_EQ(refused_at(model()), "accepted");
  const std::string vision = "config.json.vit_config.", adapter = "config.json.adapter_config.",
                    text = "config.json.text_config.";
  EXPECT_EQ(refused_at(model(R"("num_key_value_heads": 8)")), vision + "num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("head_dim": 64)")), vision + "head_dim");
  EXPECT_EQ(refused_at(model(R"("image_default_input_size": [336, 336])")), vision + "image_num_pos");
  EXPECT_EQ(refused_at(model(R"("image_default_input_size": [336, 378])")), vision + "image_default_input_size");
  EXPECT_EQ(refused_at(model(R"("attention_dropout": 0.1)")), vision + "attention_dropout");
  EXPECT_EQ(refused_at(model("", R"("vit_layers": [])")), adapter + "vit_layers");
  EXPECT_EQ(refused_at(model("", R"("vit_layers": [27])")), adapter + "vit_layers");
  EXPECT_EQ(refused_at(model("", R"("vit_layers": [-28])")), adapter + "vit_layers");
  EXPECT_EQ(refused_at(model("", R"("text_hidden_size": 4096)")), adapter + "text_hidden_size");
  EXPECT_EQ(refused_at(model("", R"("image_feature_dropout": 0.1)")), adapter + "image_feature_dropout");
  EXPECT_EQ(refused_at(model("", "", R"("additional_vocab_size": null)")), text + "additional_vocab_size");
  EXPECT_EQ(refused_at(model("", "", R"("residual_dropout": 0.1)")), text + "residual_dropout");
  EXPECT_EQ(refused_at(model("", "", R"("rope_scaling": {"rope_type": "dynamic"})")), text + "rope_scaling.rope_type");
  EXPECT_EQ(refused_at(model("", "", R"("tie_word_embeddings": true)")), text + "tie_word_embeddings");
  EXPECT_EQ(refused_at(model("", "", "", R"("tie_word_embeddings": true)")), "config.json.tie_word_embeddings");
}

// A file as the conversion of the checkpoints saves it.
TEST(Molmo2Configs, WhatChangesNothingIsNotUnknown) {
  const std::string part = R"("attn_implementation": "sdpa", "attention_dropout": 0.0, "residual_dropout": 0.0,
      "initializer_range": 0.02, "model_type": "molmo2")";
  const Vlm m = test::read(model(
      part + R"(, "layer_norm_eps": 1e-06)", part + R"(, "image_feature_dropout": 0.0)",
      R"("attn_implementation": "sdpa", "embedding_dropout": 0.0, "attention_dropout": 0.0, "residual_dropout": 0.0,
         "rope_theta": 5000000.0, "rope_scaling": null, "rope_scaling_layers": null, "max_position_embeddings": 36864,
         "use_cache": true, "layer_norm_eps": 1e-06, "initializer_range": 0.02)",
      R"("image_start_token_id": 1, "image_end_token_id": 2, "image_patch_id": 3, "image_high_res_id": 3, "image_col_id": 4,
         "low_res_image_start_token_id": 5, "image_low_res_id": 6, "frame_start_token_id": 7, "frame_end_token_id": 8,
         "use_frame_special_tokens": true, "tie_word_embeddings": false, "use_cache": true,
         "auto_map": {"AutoConfig": "configuration_molmo2.Molmo2Config"})"));
  EXPECT_EQ(m.unread_keys, std::vector<std::string>{});
  EXPECT_EQ(test::read(model(R"("another_key": 1)")).unread_keys, (std::vector<std::string>{"vit_config.another_key"}));
}

TEST(Molmo2Configs, ProcessorsMustAgreeWithTheConfig) {
  const auto read = [](const char* keys, json::ProcessorFile file = json::ProcessorFile::preprocessor) {
    Vlm m = test::read(model());
    json::read_processor(nlohmann::json::parse(keys), "preprocessor_config.json", file, m);
    return m;
  };
  EXPECT_THROW(read(R"({"size": {"height": 336, "width": 336}})"), Error);
  EXPECT_THROW(read(R"({"patch_size": 16})"), Error);
  EXPECT_THROW(read(R"({"pooling_size": [2]})"), Error);
  EXPECT_THROW(read(R"({"use_low_res_token_for_global_crops": true})", json::ProcessorFile::processor), Error);
  const auto tokens = [](const Vlm& m) {
    const ImageLayout l = layout(m.image_processor, ImageSize{378, 644});
    return std::pair{l.llm_tokens, l.text_overhead};
  };
  EXPECT_EQ(tokens(test::read(model())), std::pair(14L * 14 + 14 * 23, 4L + 14));
  EXPECT_EQ(tokens(read(R"({"pooling_size": [3, 3]})")), std::pair(9L * 9 + 9 * 16, 4L + 9));
  EXPECT_EQ(tokens(read(R"({"overlap_margins": [2, 2], "max_crops": 2})")), std::pair(14L * 14 + 14 * 25, 4L + 14));
  EXPECT_EQ(tokens(read(R"({"image_use_col_tokens": true})", json::ProcessorFile::processor)).second, 4 + 14 + 14)
      << "a file that says nothing of the whole picture means both";
  EXPECT_EQ(tokens(read(R"({"image_use_col_tokens": false})", json::ProcessorFile::processor)).second, 4);
}

}  // namespace
}  // namespace vlmest::molmo2_configs_test
