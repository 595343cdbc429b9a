// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/fast_vlm/family.hpp>
#include <vlmest/family/fast_vlm/rule.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::fast_vlm_configs_test {
namespace {

using test::refused_at;

/// With these further keys of the tower's part, arguments for timm and keys of the model's own.
std::string model(const std::string& vision = {}, const std::string& args = {}, const std::string& more = {}) {
  return R"({"model_type": "fast_vlm", "vision_config": {"architecture": "fastvit_mci3", "hidden_size": 3072)" +
         (vision.empty() ? "" : ", " + vision) + R"(, "model_args": {)" + args + "}}" +
         (more.empty() ? "" : ", " + more) + "}";
}
FastVlmFamily family(const std::string& json) { return get<FastVlmFamily>(test::read(json).family); }

TEST(FastVlmConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("fast_vlm.json"), 10);
}

// FastVlmConfig.__post_init__.
TEST(FastVlmConfigs, PartsThatAreMissingAreTheirClassesDefaults) {
  const FastVlmFamily f = family(R"({"model_type": "fast_vlm"})");
  EXPECT_TRUE(f.vision.fused);
  EXPECT_EQ(f.vision.stages.size(), 5U);
  EXPECT_EQ(width(f.language), 3584);
  EXPECT_FALSE(f.tied);
}

// TimmWrapperConfig has no model_args of its own, and FastVit branches unless it is told to infer.
TEST(FastVlmConfigs, BranchesAreMergedOnlyWhereTheArgumentsSaySo) {
  EXPECT_FALSE(family(model()).vision.fused);
  EXPECT_FALSE(family(model("", R"("inference_mode": null)")).vision.fused);
  EXPECT_TRUE(family(model("", R"("inference_mode": true)")).vision.fused);
}

TEST(FastVlmConfigs, ATokenIsAsManyPixelsAsTheStridesMultiplyTo) {
  const auto patch = [](const std::string& json) {
    return get<image_processor::FastVlm>(test::read(json).image_processor).patch_size;
  };
  EXPECT_EQ(patch(model()), 64);
  EXPECT_EQ(patch(model("", R"("down_stride": 3)")), 324);
  EXPECT_EQ(patch(R"({"model_type": "fast_vlm", "vision_config": {"architecture": "fastvit_t8", "hidden_size": 768}})"),
            32);
}

TEST(FastVlmConfigs, WhatIsNotModelledIsRefused) {
  const std::string own = "config.json.", vision = "config.json.vision_config.", args = vision + "model_args.";
  EXPECT_EQ(refused_at(model()), "accepted");
  EXPECT_EQ(refused_at(model("", "", R"("vision_feature_layer": -2)")), own + "vision_feature_layer");
  EXPECT_EQ(refused_at(model("", "", R"("vision_feature_layer": [-1])")), own + "vision_feature_layer");
  EXPECT_EQ(refused_at(model("", "", R"("vision_feature_select_strategy": "default")")),
            own + "vision_feature_select_strategy");
  EXPECT_EQ(refused_at(R"({"model_type": "fast_vlm", "vision_config": {"hidden_size": 8}})"), vision + "architecture");
  EXPECT_EQ(refused_at(R"({"model_type": "fast_vlm", "vision_config": {"architecture": "fastvit_mci3"}})"),
            vision + "hidden_size");
  EXPECT_EQ(refused_at(R"({"model_type": "fast_vlm", "vision_config": {"model_type": "clip_vision_model"}})"),
            vision + "model_type");
  for (const char* arg :
       {"in_chans", "down_patch_size", "repmixer_kernel_size", "num_classes", "features_only", "out_indices"})
    EXPECT_EQ(refused_at(model("", "\"" + std::string(arg) + "\": 4")), args + arg);
  for (const char* rate : {"drop_rate", "proj_drop_rate", "drop_path_rate"}) {
    EXPECT_EQ(refused_at(model("", "\"" + std::string(rate) + "\": 0.1")), args + rate);
    EXPECT_EQ(refused_at(model("", "\"" + std::string(rate) + "\": 0")), "accepted");
  }
  EXPECT_EQ(refused_at(model("", R"("fork_feat": true)")), args + "fork_feat");
  EXPECT_EQ(refused_at(model("", R"("global_pool": "max")")), args + "global_pool");
  EXPECT_EQ(refused_at(model("", R"("cls_ratio": 1.5)")), args + "cls_ratio");
  EXPECT_EQ(refused_at(model("", R"("cls_ratio": 1)")), vision + "hidden_size");
}

// A list that timm would stop at, or take another meaning from.
TEST(FastVlmConfigs, ListsHaveAnEntryForEachStage) {
  const std::string args = "config.json.vision_config.model_args.";
  EXPECT_EQ(refused_at(model("", R"("layers": [1, 1, 1, 1])")), args + "layers");
  EXPECT_EQ(refused_at(model("", R"("layers": [1, 1, 0, 1, 1])")), args + "layers");
  EXPECT_EQ(refused_at(model("", R"("mlp_ratios": [4, 4, 4, 4, "4"])")), args + "mlp_ratios");
  EXPECT_EQ(refused_at(model("", R"("downsamples": [true])")), args + "downsamples");
  EXPECT_EQ(refused_at(model("", R"("se_downsamples": [1, 0, 0, 0, 0])")), args + "se_downsamples");
  EXPECT_EQ(refused_at(model("", R"("token_mixers": ["repmixer", "repmixer", "repmixer", "attention", "pool"])")),
            args + "token_mixers");
  EXPECT_EQ(refused_at(model("", R"("embed_dims": [96, 192, 384, 768, 1537])")), args + "embed_dims");
  EXPECT_EQ(refused_at(model("", R"("embed_dims": [72, 144, 144, 144, 1536])")), args + "embed_dims");
}

}  // namespace
}  // namespace vlmest::fast_vlm_configs_test
