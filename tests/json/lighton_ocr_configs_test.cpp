// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/lighton_ocr/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::lighton_ocr_configs_test {
namespace {

using test::read;
using test::refused_at;

TEST(LightOnOcrConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("lighton_ocr.json"), 1);
}

TEST(LightOnOcrConfigs, TakesATowerThatKnowsSizes) {
  EXPECT_EQ(refused_at(R"({"model_type": "lighton_ocr", "vision_config": {"model_type": "clip_vision_model"}})"),
            "config.json.vision_config.model_type");
}

// 308x483 becomes 22x35 patches, of which the last column fills no square; cells of 28 leave none over.
TEST(LightOnOcrConfigs, TheImageProcessorsPatchesAreTheCells) {
  Vlm m = read(R"({"model_type": "lighton_ocr"})");
  const auto count = [&] { return layout(m.image_processor, ImageSize{308, 483}); };
  EXPECT_EQ(count().tower_tokens, 22 * 35);
  EXPECT_EQ(count().llm_tokens, 11 * 17);
  EXPECT_EQ(count().text_overhead, 0);
  get<image_processor::LightOnOcr>(m.image_processor).cell = 28;
  EXPECT_EQ(count().tower_tokens, 22 * 36);
  EXPECT_EQ(count().llm_tokens, 11 * 18);
  get<image_processor::LightOnOcr>(m.image_processor).cell = 16;
  EXPECT_THROW(count(), Error);
  EXPECT_THROW(layout(image_processor::LightOnOcr{}, ImageSize{14, 300}), Error);
}

}  // namespace
}  // namespace vlmest::lighton_ocr_configs_test
