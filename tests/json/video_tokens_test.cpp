// SPDX-License-Identifier: Apache-2.0
// Token counts of videos against those of transformers' own processors: tests/data/video_tokens.json.
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/family/glm4v/rule.hpp>
#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>
#include <vlmest/family/qwen2_vl/rule.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>

namespace vlmest::video_tokens_test {
namespace {

using nlohmann::json;

/// The rule with a setting's values, as the file's text says them.
ImageProcessor rule_of(const std::string& family, const std::string& setting) {
  image_processor::VideoLimits frames{.budget = {3136, 12845056}, .max_video_tokens = 128000};
  image_processor::VideoLimits all{.budget = {4096, 25165824}, .fps = 2};
  if (setting != "checkpoint") frames.budget = {100352, 602112};
  if (setting == "class") all.budget = {131072, 786432};
  frames.capped = all.capped = setting == "capped";
  if (family == "qwen2_vl") return image_processor::Qwen2Vl{.video = frames};
  if (family == "qwen2_5_vl") return image_processor::Qwen2_5Vl{.video = frames};
  if (family == "qwen3_vl") return image_processor::Qwen3Vl{.video = all};
  if (family == "glm4v") return image_processor::Glm4v{};
  if (family == "glm46v") return image_processor::Glm4v{.glm46v = true};
  if (family == "internvl") return image_processor::InternVl{};
  if (family == "llava_onevision") return image_processor::LlavaOnevision{};
  if (family == "smolvlm") return image_processor::Idefics3{.tile_size = 384, .patch_size = 14, .merge = 3};
  throw std::runtime_error("no rule for " + family);
}

/// A layout as the file has it.
json result(const std::string& family, const ImageProcessor& rule, const VideoSource& video) {
  try {
    const ImageLayout l = video_layout(rule, video);
    const bool packed = family.starts_with("qwen") || family.starts_with("glm");
    const std::int64_t taken = family == "qwen3_vl" && !video.take ? l.frames * 2 : l.sampled;
    const std::int64_t markers = l.text_overhead - (family == "smolvlm" ? 1 : 0);  // there no text follows
    if (packed) return {l.llm_tokens, markers, taken, l.frames, l.patches.rows, l.patches.cols};
    return {l.llm_tokens, markers, taken, l.tiles};
  } catch (const Error&) {
    return nullptr;
  }
}

TEST(VideoTokens, AreThoseOfTheProcessors) {
  const json file = json::parse(std::ifstream(VLMEST_SOURCE_DIR "/tests/data/video_tokens.json"));
  int rows = 0;
  for (const auto& [family, settings] : file.at("families").items())
    for (const auto& [setting, cases] : settings.items()) {
      const ImageProcessor rule = rule_of(family, setting);
      for (const json& c : cases.at("given")) {
        ++rows;
        EXPECT_EQ(result(family, rule, {.size = {c[1], c[2]}, .frames = c[0], .fps = c[3]}), c[4])
            << family << " " << setting << " " << c;
      }
      const std::optional<double> own = own_sampling(rule).fps;
      for (const json& c : cases.at("sampled")) {
        ++rows;
        std::optional<double> take = own;
        // GLM-4.6V's processor does not read what it is asked for.
        if (!c[2].is_null() && family != "glm46v") take = c[2].get<double>();
        const VideoSource video{.size = {c[3], c[4]}, .frames = c[0], .fps = c[1], .take = take};
        EXPECT_EQ(take ? result(family, rule, video) : json(), c[5]) << family << " " << setting << " " << c;
      }
    }
  EXPECT_EQ(rows, 4690);
}

/// Frames that a processor could not take are refused with a line.
TEST(VideoTokens, FramesOutOfRangeAreRefused) {
  const image_processor::Qwen3Vl qwen;
  EXPECT_THROW(video_layout(qwen, {.size = {224, 224}, .frames = 1, .fps = 2}), Error);
  EXPECT_THROW(video_layout(qwen, {.size = {224, 224}, .frames = image_processor::max_frames + 1, .fps = 2}), Error);
  EXPECT_THROW(video_layout(qwen, {.size = {0, 224}, .frames = 4, .fps = 2}), Error);
  EXPECT_THROW(video_layout(qwen, {.size = {224, 224}, .frames = 4, .fps = 0}), Error);
}

TEST(VideoTokens, NumbersInWords) {
  EXPECT_EQ(image_processor::english_words(20), 1);    // twenty
  EXPECT_EQ(image_processor::english_words(21), 3);    // twenty-one
  EXPECT_EQ(image_processor::english_words(100), 2);   // one hundred
  EXPECT_EQ(image_processor::english_words(164), 6);   // one hundred and sixty-four
  EXPECT_EQ(image_processor::english_words(1005), 4);  // one thousand and five
}

}  // namespace
}  // namespace vlmest::video_tokens_test
