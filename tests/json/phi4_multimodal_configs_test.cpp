// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/phi4_multimodal/family.hpp>
#include <vlmest/family/phi4_multimodal/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::phi4_multimodal_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& text = {}, const std::string& vision = {}, const std::string& audio = {}) {
  return R"({"model_type": "phi4_multimodal", "vision_config": {)" + vision + R"(}, "audio_config": {)" + audio + "}" +
         (text.empty() ? "" : ", " + text) + "}";
}
Phi4MultimodalFamily family(const std::string& json) { return get<Phi4MultimodalFamily>(test::read(json).family); }

TEST(Phi4MultimodalConfigs, WeightsHaveTheNamesAndShapesOfTheClass) {
  EXPECT_EQ(test::expect_recorded_parameters("phi4_multimodal.json"), 6);
}

TEST(Phi4MultimodalConfigs, PartsThatAreMissingAreTheirClassesDefaults) {
  const Phi4MultimodalFamily f = family(R"({"model_type": "phi4_multimodal"})");
  EXPECT_EQ(f.vision.patches.layers, 27);
  EXPECT_EQ(f.vision.feature_layer, -2);
  EXPECT_EQ(f.audio.layers, 24);
  EXPECT_EQ(f.audio.biases(), 2000);
  EXPECT_EQ(get_if<LlamaConfig>(&f.language)->kv_heads, 8);
  EXPECT_FALSE(f.tied);
}

TEST(Phi4MultimodalConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model()), "accepted");
  const std::string text = "config.json.", vision = text + "vision_config.", audio = text + "audio_config.";
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 7)")), text + "num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("rope_scaling": {"type": "dynamic"})")), text + "rope_scaling.rope_type");
  EXPECT_EQ(refused_at(model(R"("embd_pdrop": 2)")), text + "embd_pdrop");
  EXPECT_EQ(refused_at(model(R"("embd_pdrop": 0.1)")), text + "embd_pdrop");
  EXPECT_EQ(refused_at(model("", R"("model_type": "siglip_vision_model")")), vision + "model_type");
  EXPECT_EQ(refused_at(model("", R"("num_attention_heads": 7)")), vision + "num_attention_heads");
  EXPECT_EQ(refused_at(model("", R"("image_size": 434)")), vision + "image_size") << "31 patches a side";
  EXPECT_EQ(refused_at(model("", R"("image_size": [448, 448])")), vision + "image_size");
  EXPECT_EQ(refused_at(model("", R"("feature_layer": -29)")), vision + "feature_layer");
  EXPECT_EQ(refused_at(model("", R"("feature_layer": null)")), vision + "feature_layer");
  EXPECT_EQ(refused_at(model("", R"("crop_size": 336)")), vision + "crop_size");
  EXPECT_EQ(refused_at(model("", R"("patch_size": 16)")), vision + "crop_size");
  EXPECT_EQ(refused_at(model("", R"("patch_size": 16, "crop_size": 512)")), "accepted");
  EXPECT_EQ(refused_at(model("", "", R"("model_type": "gemma3n_audio")")), audio + "model_type");
  EXPECT_EQ(refused_at(model("", "", R"("ext_pw_out_channel": 512)")), audio + "ext_pw_out_channel");
  EXPECT_EQ(refused_at(model("", "", R"("hidden_size": 512)")), audio + "ext_pw_out_channel");
  EXPECT_EQ(refused_at(model("", "", R"("depthwise_separable_out_channel": 512)")),
            audio + "depthwise_separable_out_channel");
  EXPECT_EQ(refused_at(model("", "", R"("downsample_rate": 2)")), audio + "downsample_rate");
  EXPECT_EQ(refused_at(model("", "", R"("time_reduction": 6)")), audio + "time_reduction");
  EXPECT_EQ(refused_at(model("", "", R"("time_reduction": 1)")), audio + "time_reduction");
  EXPECT_EQ(refused_at(model("", "", R"("chunk_size": 0)")), audio + "chunk_size");
  EXPECT_EQ(refused_at(model("", "", R"("left_chunk": -1)")), audio + "left_chunk");
  EXPECT_EQ(refused_at(model("", "", R"("conv_glu_type": "elu")")), "activation");
  EXPECT_EQ(refused_at(model("", "", R"("num_blocks": null)")), audio + "num_blocks");
  EXPECT_EQ(refused_at(model("", "", R"("bias_max_distance": 0)")), audio + "bias_max_distance");
}

TEST(Phi4MultimodalConfigs, TheCheckpointsOwnCodeIsRefusedByName) {
  try {
    test::read(R"({"model_type": "phi4mm", "hidden_size": 3072})");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "config.json.model_type");
    EXPECT_EQ(e.what_happened, "'phi4mm' runs by code of the checkpoint's own, which is not modelled");
    EXPECT_EQ(e.hint, "give the config of transformers' class, phi4_multimodal");
  }
}

TEST(Phi4MultimodalConfigs, ProcessorsMustAgreeWithTheConfig) {
  const auto read = [](const char* keys, json::ProcessorFile file = json::ProcessorFile::processor) {
    Vlm m = test::read(R"({"model_type": "phi4_multimodal"})");
    json::read_processor(nlohmann::json::parse(keys), "processor_config.json", file, m);
    return m;
  };
  EXPECT_THROW(read(R"({"image_processor": {"size": {"height": 336, "width": 336}}})"), Error);
  EXPECT_THROW(read(R"({"image_processor": {"patch_size": 16}})"), Error);
  EXPECT_THROW(read(R"({"feature_extractor": {"feature_size": 128}})"), Error);
  EXPECT_THROW(read(R"({"feature_extractor": {"audio_downsample_rate": 2}})"), Error);
  const Vlm m = read(R"({"image_processor": {"size": {"height": 448, "width": 448}, "patch_size": 14, "dynamic_hd": 4},
                         "feature_extractor": {"feature_size": 80, "win_length": 400, "audio_compression_rate": 16}})");
  EXPECT_EQ(layout(m.image_processor, ImageSize{1000, 1000}).tiles, 5);
  EXPECT_EQ(audio_layout(m.audio, {1}).llm_tokens, 7);  // of 98 frames
}

// An encoder that leaves fewer features than a clip has tokens: their places would stay empty.
TEST(Phi4MultimodalConfigs, TokensWithoutFeaturesAreRefused) {
  const Vlm vlm = test::read(model("", "", R"("time_reduction": 16)"));
  EXPECT_EQ(audio_layout(vlm.audio, {0.1}).llm_tokens, 1);
  EXPECT_THROW(audio_layout(vlm.audio, {1}), Error);
}

}  // namespace
}  // namespace vlmest::phi4_multimodal_configs_test
