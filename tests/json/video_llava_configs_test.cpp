// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::video_llava_configs_test {
namespace {

using test::read;
using test::refused_at;

TEST(VideoLlavaConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("video_llava.json"), 14);
  EXPECT_EQ(test::expect_recorded_parameters("llava_next_video.json"), 15);
}

TEST(VideoLlavaConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(R"({"model_type": "video_llava", "vision_config": {"model_type": "siglip_vision_model"}})"),
            "config.json.vision_config.model_type");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next_video", "spatial_pool_mode": "median"})"),
            "config.json.spatial_pool_mode");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next_video", "spatial_pool_stride": 25})"),
            "config.json.spatial_pool_stride");
  EXPECT_EQ(refused_at(R"({"model_type": "llava_next_video", "vision_feature_select_strategy": "full"})"),
            "config.json.vision_feature_select_strategy");
}

}  // namespace
}  // namespace vlmest::video_llava_configs_test
