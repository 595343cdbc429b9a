// SPDX-License-Identifier: Apache-2.0
// Nemotron Nano V2 VL's config, through its row alone: weights, what is refused, how pictures are cut.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/nemotron_h_vl/read.hpp>
#include <vlmest/json/hf/read.hpp>
#include <vlmest/json/parse.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::nemotron_h_vl_configs_test {
namespace {

constexpr auto rows = json::family_rows<family::NemotronHVl>;

Vlm own(const std::string& text) { return json::hf::read(json::parse(text, "config.json"), "config.json", rows); }

/// Keys that come later stand for those before.
struct Given {
  std::string top, args, vision, text;
};
std::string model(const Given& g = {}) {
  return R"({"model_type": "NemotronH_Nano_VL_V2", "force_image_size": 256, "ps_version": "v2", "vit_hidden_size": 64,
             "projector_hidden_size": 80, )" +
         g.top + R"("vision_config": {)" + g.vision +
         R"("args": {"model": "vit_tiny_patch16_224", "model_kwargs": {"embed_dim": 64, "depth": 2, "num_heads": 2},
             "teachers": [{"name": "clip"}, {"name": "sam", "use_summary": false}], "register_multiple": 8, )" +
         g.args +
         R"("cpe_max_size": 512}}, "llm_config": {"hidden_size": 96, "intermediate_size": 72, "vocab_size": 500,
             "hybrid_override_pattern": "M*-", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
             "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 12)" +
         g.text + "}}";
}
std::string refused(const Given& g) {
  try {
    own(model(g));
  } catch (const Error& e) {
    return e.where.substr(std::string("config.json.").size());
  }
  return "";
}

TEST(NemotronHVlConfigs, WeightsHaveTheNamesAndShapesOfItsCode) {
  EXPECT_EQ(test::expect_recorded_parameters("nemotron_h_vl.json"), 16);
}

TEST(NemotronHVlConfigs, KeysMakeWeights) {
  const auto w = test::named_weights(own(model({.text = R"(, "mlp_bias": true, "use_bias": true, "conv_kernel": 3)"})));
  const auto at = [&](const std::string& name) { return w.count(name) ? w.at(name) : std::string("missing"); };
  const std::string tower = "vision_model.radio_model.model.", layers = "language_model.model.layers.";
  EXPECT_EQ(at(tower + "patch_generator.cls_token.token"), to_string(Shape{8, 64})) << "2 class tokens, 6 registers";
  EXPECT_EQ(at(tower + "patch_generator.pos_embed"), to_string(Shape{1, 32 * 32, 64}));
  EXPECT_EQ(at(tower + "blocks.1.mlp.fc1.weight"), to_string(Shape{256, 64}));
  EXPECT_EQ(at(layers + "0.mixer.in_proj.weight"), to_string(Shape{32 + 32 + 2 * 2 * 12 + 4, 96}));
  EXPECT_EQ(at(layers + "0.mixer.in_proj.bias"), to_string(Shape{32 + 32 + 2 * 2 * 12 + 4}));
  EXPECT_EQ(at(layers + "0.mixer.conv1d.weight"), to_string(Shape{32 + 2 * 2 * 12, 1, 3}));
  EXPECT_EQ(at(layers + "1.mixer.k_proj.weight"), to_string(Shape{32, 96}));
  EXPECT_EQ(at(layers + "2.mixer.up_proj.bias"), to_string(Shape{72}));
  EXPECT_EQ(at("mlp1.1.weight"), to_string(Shape{80, 256}));
}

TEST(NemotronHVlConfigs, LayersAreLettersOrWords) {
  const auto layers = [](const std::string& keys) {
    return get<NemotronHVlFamily>(own(model({.text = keys})).family).language.layers;
  };
  EXPECT_EQ(layers(""), layers(R"(, "layers_block_type": ["mamba", "attention", "mlp"])"));
  EXPECT_EQ(layers(R"(, "layers_block_type": ["mlp", "mamba"])").size(), 2u);
  EXPECT_EQ(layers(R"(, "time_step_limit": [0.0, Infinity])").size(), 3u) << "as the released files write it";
}

TEST(NemotronHVlConfigs, WhatWouldRunOtherwiseIsRefused) {
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({.top = R"("patch_size": 14, )"}), "patch_size");
  EXPECT_EQ(refused({.top = R"("text_config": {}, )"}), "text_config");
  EXPECT_EQ(refused({.top = R"("downsample_ratio": 0.3, )"}), "downsample_ratio");
  for (const char* key : {"adaptor_names", "feature_normalizer_config", "inter_feature_normalizer_config"})
    EXPECT_EQ(refused({.vision = '"' + std::string(key) + R"(": {"a": 1}, )"}), "vision_config." + std::string(key));
  EXPECT_EQ(refused({.vision = R"("vitdet_window_size": 8, )"}), "vision_config.vitdet_window_size");
  for (const char* key : {"model_norm", "spectral_reparam", "spectral_heads"})
    EXPECT_EQ(refused({.args = '"' + std::string(key) + R"(": true, )"}), "vision_config.args." + std::string(key));
  EXPECT_EQ(refused({.args = R"("drop_path": 0.1, )"}), "vision_config.args.drop_path");
  EXPECT_EQ(refused({.args = R"("gp": "avg", )"}), "vision_config.args.gp");
  EXPECT_EQ(refused({.args = R"("in_chans": 4, )"}), "vision_config.args.in_chans");
  EXPECT_EQ(refused({.args = R"("cls_token_per_teacher": false, )"}), "") << "one class token, one summary";
  const std::string text = "llm_config.";
  EXPECT_EQ(refused({.text = R"(, "layers_block_type": ["moe"])"}), text + "layers_block_type");
  EXPECT_EQ(refused({.text = R"(, "num_hidden_layers": 4)"}), text + "num_hidden_layers");
  for (const char* key : {"attention_bias", "residual_in_fp32"})
    EXPECT_EQ(refused({.text = ", \"" + std::string(key) + R"(": true)"}), text + key);
  for (const char* key : {"attention_dropout", "hidden_dropout"})
    EXPECT_EQ(refused({.text = ", \"" + std::string(key) + R"(": 0.1)"}), text + key);
  EXPECT_EQ(refused({.text = R"(, "sliding_window": 64)"}), text + "sliding_window");
  EXPECT_EQ(refused({.text = R"(, "model_type": "llama")"}), text + "model_type");
  for (const auto& [whole, other, where] :
       {std::array<std::string, 3>{R"("ps_version": "v2")", R"("ps_version": "v1")", "ps_version"},
        {R"("vit_hidden_size": 64)", R"("vit_hidden_size": 72)", "vit_hidden_size"},
        {R"("force_image_size": 256)", R"("force_image_size": 250)", "force_image_size"},
        {R"("force_image_size": 256)", R"("force_image_size": 512)", "force_image_size"},
        {R"("cpe_max_size": 512)", R"("cpe_max_size": 224)", "vision_config.args.cpe_max_size"},
        {R"("M*-")", R"("M*E")", text + "hybrid_override_pattern"},
        {R"("n_groups": 2)", R"("n_groups": 3)", text + "n_groups"},
        {"vit_tiny", "vit_giant", "vision_config.args.model"},
        {R"("depth": 2)", R"("depth": 2, "qk_norm": true)", "vision_config.args.model_kwargs.qk_norm"}}) {
    std::string changed = model();
    changed.replace(changed.find(whole), whole.size(), other);
    try {
      own(changed);
      ADD_FAILURE() << other << " is not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.where, "config.json." + where);
    }
  }
}

TEST(NemotronHVlConfigs, PicturesAreCutIntoTiles) {
  const Vlm m = own(model());
  EXPECT_EQ(layout(m.image_processor, {256, 256}).llm_tokens, 64);
  const ImageLayout wide = layout(m.image_processor, {256, 768});
  EXPECT_EQ(wide.tiles, 4) << "three and the whole picture";
  EXPECT_EQ(wide.text_overhead, 2);
  const Vlm bare = own(model({.top = R"("use_thumbnail": false, "max_num_tiles": 2, )"}));
  EXPECT_EQ(layout(bare.image_processor, {256, 768}).tiles, 2);
}

}  // namespace
}  // namespace vlmest::nemotron_h_vl_configs_test
