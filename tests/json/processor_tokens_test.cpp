// SPDX-License-Identifier: Apache-2.0
// Every family's rule against its processor: what the functions of transformers 5.17 that
// tests/data/processor_tokens.json names gave, for 210 sizes of pictures and several settings of each.
#include <fstream>
#include <functional>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/family/aya_vision/rule.hpp>
#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/family/cohere2_vision/rule.hpp>
#include <vlmest/family/gemma3/rule.hpp>
#include <vlmest/family/glm4v/rule.hpp>
#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/family/kimi_k25/rule.hpp>
#include <vlmest/family/lfm2_vl/rule.hpp>
#include <vlmest/family/lighton_ocr/rule.hpp>
#include <vlmest/family/llava_next/rule.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>
#include <vlmest/family/mistral3/rule.hpp>
#include <vlmest/family/mllama/rule.hpp>
#include <vlmest/family/ovis2/rule.hpp>
#include <vlmest/family/paligemma/rule.hpp>
#include <vlmest/family/qwen2_vl/rule.hpp>
#include <vlmest/nn/image_processor/gemma4.hpp>
#include <vlmest/nn/image_processor/llava.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>

#include "../asked_for.hpp"

namespace vlmest::processor_tokens_test {
namespace {

using nlohmann::json;
using namespace image_processor;
using image_processor::Tiling;

const json& recorded() {
  static const json d = [] {
    std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/processor_tokens.json");
    return json::parse(in);
  }();
  return d;
}

std::int64_t n(const json& s, const char* key) { return s.at(key).get<std::int64_t>(); }
PixelBudget budget(const json& s) { return {n(s, "min_pixels"), n(s, "max_pixels")}; }
std::vector<ImageSize> pinpoints(const json& s) {
  std::vector<ImageSize> r;
  for (const auto& p : s.at("pinpoints")) r.push_back({p.at(0), p.at(1)});
  return r;
}
Tiling cut(const json& s, const char* key) { return s.at(key).get<bool>() ? Tiling::automatic : Tiling::never; }
ImageProcessor idefics3(const json& s) {
  return Idefics3{.tile_size = n(s, "tile"),
                  .patch_size = n(s, "patch"),
                  .merge = n(s, "merge"),
                  .longest_edge = n(s, "longest_edge"),
                  .tiling = cut(s, "split")};
}

/// The rule of a family with settings under the names of the file.
const std::map<std::string, std::function<ImageProcessor(const json&)>> rules{
    {"llava", [](const json& s) { return Llava{.image_size = n(s, "tile"), .patch_size = n(s, "patch")}; }},
    {"llava_next",
     [](const json& s) {
       return LlavaNext{.image_size = n(s, "tile"), .patch_size = n(s, "patch"), .pinpoints = pinpoints(s)};
     }},
    {"llava_onevision",
     [](const json& s) {
       return LlavaOnevision{.image_size = n(s, "tile"),
                             .patch_size = n(s, "patch"),
                             .max_tiles = std::stoll(s.at("ratio").get<std::string>().substr(11)),
                             .pinpoints = pinpoints(s)};
     }},
    {"qwen2_vl",
     [](const json& s) { return Qwen2Vl{.patch_size = n(s, "patch"), .merge = n(s, "merge"), .budget = budget(s)}; }},
    {"qwen3_vl",
     [](const json& s) { return Qwen3Vl{.patch_size = n(s, "patch"), .merge = n(s, "merge"), .budget = budget(s)}; }},
    {"glm4v",
     [](const json& s) {
       return Glm4v{.patch_size = n(s, "patch"),
                    .merge = n(s, "merge"),
                    .temporal_patch_size = n(s, "frames"),
                    .budget = budget(s)};
     }},
    {"kimi_k25",
     [](const json& s) {
       return KimiK25{.patch_size = n(s, "patch"),
                      .merge = n(s, "merge"),
                      .max_patches = n(s, "max_patches"),
                      .max_height = n(s, "max_height")};
     }},
    {"internvl",
     [](const json& s) {
       return InternVl{
           .image_size = n(s, "tile"), .min_tiles = n(s, "min"), .max_tiles = n(s, "max"), .tiling = cut(s, "crop")};
     }},
    {"aya_vision",
     [](const json& s) {
       return AyaVision{.image_size = n(s, "tile"),
                        .patch_size = n(s, "patch") / 2,
                        .min_tiles = n(s, "min"),
                        .max_tiles = n(s, "max"),
                        .tiling = cut(s, "crop")};
     }},
    {"cohere2_vision",
     [](const json& s) {
       return Cohere2Vision{
           .image_size = n(s, "tile"), .patch_size = n(s, "patch"), .max_tiles = n(s, "max"), .tiling = cut(s, "crop")};
     }},
    {"idefics3", idefics3},
    {"smolvlm", idefics3},
    {"pixtral",
     [](const json& s) { return Pixtral{.patch_size = n(s, "patch"), .longest_edge = n(s, "longest_edge")}; }},
    {"mistral3",
     [](const json& s) {
       return Mistral3{.patch_size = n(s, "patch"), .longest_edge = n(s, "longest_edge"), .merge = n(s, "merge")};
     }},
    {"gemma3",
     [](const json& s) {
       return Gemma3{.image_tokens = n(s, "seq"),
                     .pan_and_scan = s.at("scan"),
                     .min_crop_size = n(s, "min_crop"),
                     .max_crops = n(s, "max_crops"),
                     .min_ratio = s.at("ratio")};
     }},
    {"gemma4",
     [](const json& s) {
       return Gemma4{
           .patch_size = n(s, "patch"), .pool = n(s, "pool"), .soft_tokens = n(s, "soft"), .merged = s.at("merged")};
     }},
    {"mllama", [](const json& s) { return Mllama{.image_size = n(s, "tile"), .max_tiles = n(s, "max")}; }},
    {"paligemma", [](const json& s) { return PaliGemma{.image_size = n(s, "tile"), .patch_size = n(s, "patch")}; }},
    {"lfm2_vl",
     [](const json& s) {
       return Lfm2Vl{.patch_size = n(s, "patch"),
                     .merge = n(s, "merge"),
                     .min_tokens = n(s, "min_tokens"),
                     .max_tokens = n(s, "max_tokens"),
                     .tile_size = n(s, "tile"),
                     .min_tiles = n(s, "min"),
                     .max_tiles = n(s, "max"),
                     .thumbnail = s.at("thumbnail"),
                     .tolerance = s.at("tolerance"),
                     .markers = s.at("markers"),
                     .tiling = cut(s, "split")};
     }},
    {"ovis2",
     [](const json& s) {
       return Ovis2{.image_size = n(s, "tile"),
                    .patch_size = n(s, "patch"),
                    .merge = n(s, "merge"),
                    .min_tiles = n(s, "min"),
                    .max_tiles = n(s, "max"),
                    .covering = s.at("covering"),
                    .tiling = cut(s, "crop")};
     }},
    {"blip-2",
     [](const json& s) {
       return Blip2{.image_size = n(s, "tile"), .patch_size = n(s, "patch"), .query_tokens = n(s, "queries")};
     }},
};

/// As the file has it: LLM tokens, tiles (Mllama: rows, columns), markers; null where the size is refused.
json counted(const ImageProcessor& rule, ImageSize size, std::size_t images) {
  try {
    const ImageLayout l = layouts(rule, std::vector<ImageSize>(images, size)).back();
    if (get_if<Mllama>(&rule)) return {l.llm_tokens, l.tile_grid.rows, l.tile_grid.cols, l.text_overhead};
    return {l.llm_tokens, l.tiles, l.text_overhead};
  } catch (const Error& e) {
    EXPECT_FALSE(e.hint.empty());
    return nullptr;
  }
}

class Processor : public testing::TestWithParam<std::string> {};

TEST_P(Processor, MakesTheseTokens) {
  const json& family = recorded().at("families").at(GetParam());
  const json& sizes = family.at("sizes");
  ASSERT_GE(sizes.size(), 200u);
  for (const auto& setting : family.at("settings")) {
    const json& given = setting.at("given");
    const ImageProcessor rule = rules.at(GetParam())(given);
    ASSERT_EQ(setting.at("results").size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const ImageSize size{sizes[i].at(0), sizes[i].at(1)};
      EXPECT_EQ(counted(rule, size, given.value("images", std::size_t{1})), setting.at("results")[i])
          << size.height << "x" << size.width << " with " << given;
    }
  }
}

std::vector<std::string> families() {
  std::vector<std::string> r;
  for (const auto& [name, family] : recorded().at("families").items()) r.push_back(name);
  return r;
}
INSTANTIATE_TEST_SUITE_P(Families, Processor, testing::ValuesIn(parameters_of("Families/Processor", families)),
                         [](const auto& p) {
                           std::string s = p.param;
                           for (char& c : s) c = c == '-' ? '_' : c;
                           return s;
                         });

TEST(ProcessorTokens, EveryFamilyIsThere) { EXPECT_EQ(recorded().at("families").size(), rules.size()); }

}  // namespace
}  // namespace vlmest::processor_tokens_test
