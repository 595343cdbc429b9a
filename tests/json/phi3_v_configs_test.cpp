// SPDX-License-Identifier: Apache-2.0
// Phi-3-vision's config and processor's file, through its row alone: weights, and what its class or its forward
// refuses.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/phi3_v/read.hpp>
#include <vlmest/json/hf/read.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::phi3_v_configs_test {
namespace {

constexpr auto rows = json::family_rows<family::Phi3V>;

Vlm own(const nlohmann::json& document) { return json::hf::read(document, "config.json", rows); }
nlohmann::json model(const nlohmann::json& change = {}) {
  nlohmann::json d = nlohmann::json::parse(R"({"model_type": "phi3_v", "hidden_size": 64, "intermediate_size": 96,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 500,
      "rope_scaling": {"type": "su", "short_factor": [1, 1, 1, 1, 1, 1, 1, 1], "long_factor": [2, 2, 2, 2, 2, 2, 2, 2]},
      "img_processor": {"name": "clip_vision_model", "model_name": "openai/clip-vit-large-patch14-336",
                        "image_dim_out": 1024, "num_img_tokens": 144},
      "embd_layer": {"embedding_cls": "image", "hd_transform_order": "sub_glb", "projection_cls": "mlp",
                     "use_hd_transform": true, "with_learnable_separator": true}})");
  d.merge_patch(change);
  return d;
}
std::string refused(const char* change) {
  try {
    own(model(nlohmann::json::parse(change)));
  } catch (const Error& e) {
    return e.where;
  }
  return "";
}

TEST(Phi3VConfigs, WeightsHaveTheNamesAndShapesOfItsCode) {
  EXPECT_EQ(test::expect_recorded_parameters("phi3_v.json"), 4);
}

TEST(Phi3VConfigs, ReadsWhatRuns) {
  EXPECT_EQ(refused("{}"), "");
  EXPECT_EQ(refused(R"({"rope_scaling": null})"), "");
  EXPECT_EQ(refused(R"({"rope_scaling": {"type": "yarn"}})"), "");
  EXPECT_EQ(get<Phi3VFamily>(own(model(nlohmann::json::parse(R"({"img_processor": {"layer_idx": 3}})"))).family)
                .vision.feature_layer,
            3);
}

TEST(Phi3VConfigs, WhatItsClassOrItsForwardRefusesIsRefused) {
  EXPECT_EQ(refused(R"({"embd_layer": "default"})"), "config.json.embd_layer");
  EXPECT_EQ(refused(R"({"embd_layer": {"hd_transform_order": "glb_sub"}})"),
            "config.json.embd_layer.hd_transform_order");
  EXPECT_EQ(refused(R"({"embd_layer": {"projection_cls": null}})"), "config.json.embd_layer.projection_cls");
  EXPECT_EQ(refused(R"({"embd_layer": {"use_hd_transform": false}})"), "config.json.embd_layer.use_hd_transform");
  EXPECT_EQ(refused(R"({"img_processor": {"model_name": "google/siglip"}})"), "config.json.img_processor.model_name");
  EXPECT_EQ(refused(R"({"img_processor": {"image_dim_out": 768}})"), "config.json.img_processor.image_dim_out");
  EXPECT_EQ(refused(R"({"img_processor": {"layer_idx": 25}})"), "config.json.img_processor.layer_idx");
  EXPECT_EQ(refused(R"({"img_processor": {"type_feature": "cls_patch"}})"), "config.json.img_processor.type_feature");
  EXPECT_EQ(refused(R"({"rope_scaling": {"type": "longrope"}})"), "config.json.rope_scaling.type");
  EXPECT_EQ(refused(R"({"rope_scaling": {"long_factor": [1, 2]}})"), "config.json.rope_scaling.long_factor");
  EXPECT_EQ(refused(R"({"n_embd": 96})"), "config.json.n_embd");
}

TEST(Phi3VConfigs, DropoutIsRefused) {
  for (const std::string key : {"resid_pdrop", "embd_pdrop", "attention_dropout"})
    EXPECT_EQ(refused(("{\"" + key + "\": 0.1}").c_str()), "config.json." + key);
}

}  // namespace
}  // namespace vlmest::phi3_v_configs_test
