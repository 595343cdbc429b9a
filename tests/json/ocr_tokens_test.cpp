// SPDX-License-Identifier: Apache-2.0
// The rules of the families on SAM's tower and of their relatives against their processors: what the functions of
// transformers 5.17 that tests/data/ocr_tokens.json names gave, for 50 sizes of pictures and several settings of each.
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/family/deepseek_ocr2/rule.hpp>
#include <vlmest/family/got_ocr2/rule.hpp>
#include <vlmest/nn/image_processor/padded_square.hpp>

namespace vlmest::ocr_tokens_test {
namespace {

using image_processor::Tiling;
using nlohmann::json;

const json& recorded() {
  static const json d = [] {
    std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/ocr_tokens.json");
    return json::parse(in);
  }();
  return d;
}

std::int64_t n(const json& s, const char* key) { return s.at(key).get<std::int64_t>(); }
Tiling cut(const json& s) { return s.at("crop").get<bool>() ? Tiling::automatic : Tiling::never; }

/// Calls what("12 of setting s", size, index) for every size that a setting was asked about.
template <class What>
int for_each_size(const json& setting, What&& what) {
  const json& sizes = recorded().at("sizes");
  const std::size_t count = setting.at("tiles").size();
  for (std::size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(sizes.at(i).dump() + " min " + setting.at("min").dump() + " max " + setting.at("max").dump());
    what(ImageSize{sizes.at(i).at(0), sizes.at(i).at(1)}, i);
  }
  return static_cast<int>(count);
}

TEST(OcrTokens, TilesOfGotOcr2) {
  int checked = 0;
  for (const json& s : recorded().at("got_ocr2")) {
    const image_processor::GotOcr2 rule{
        .image_size = n(s, "size"), .min_tiles = n(s, "min"), .max_tiles = n(s, "max"), .tiling = cut(s)};
    const std::int64_t side = n(s, "size") / 64;
    checked += for_each_size(s, [&](ImageSize size, std::size_t i) {
      const ImageLayout l = layout(rule, size);
      EXPECT_EQ(l.tiles, s.at("tiles").at(i).get<std::int64_t>());
      EXPECT_EQ(l.llm_tokens, l.tiles * side * side);
    });
  }
  EXPECT_EQ(checked, 416);
}

/// Views whose placeholders the class writes in another number than the tower has features cannot run: of those the
/// tiles alone are compared.
TEST(OcrTokens, TilesAndPlaceholdersOfDeepseekOcr2) {
  int run = 0, refused = 0;
  for (const json& s : recorded().at("deepseek_ocr2")) {
    const image_processor::DeepseekOcr2 rule{.size = n(s, "size"),
                                             .tile = n(s, "tile"),
                                             .min_tiles = n(s, "min"),
                                             .max_tiles = n(s, "max"),
                                             .tiling = cut(s)};
    for_each_size(s, [&](ImageSize size, std::size_t i) {
      const std::int64_t tiles = s.at("tiles").at(i), tokens = s.at("tokens").at(i);
      const bool whole = rule.tiling == Tiling::never || std::max(size.height, size.width) <= rule.tile;
      EXPECT_EQ(
          whole ? 0 : image_processor::nearest_aspect_grid(size, rule.tile, rule.min_tiles, rule.max_tiles).count(),
          tiles);
      if (rule.size == 1024 && rule.tile == 768 && rule.tiling == Tiling::automatic) {
        const ImageLayout l = layout(rule, size);
        EXPECT_EQ(image_processor::local_tiles(l), tiles);
        EXPECT_EQ(l.llm_tokens, tokens);
        ++run;
      } else {
        EXPECT_THROW((void)layout(rule, size), Error);
        ++refused;
      }
    });
  }
  EXPECT_EQ(run, 50);
  EXPECT_EQ(refused, 150);
}

/// DeepSeek-VL, its hybrid and Janus fit every picture into one square for each tower.
TEST(OcrTokens, SquaresOfDeepseekVl) {
  const json& squares = recorded().at("squares");
  const image_processor::PaddedSquare one, two{.high_res_size = 1024};
  for (const char* name : {"DeepseekVLImageProcessor", "JanusImageProcessor", "DeepseekVLHybridImageProcessor"}) {
    const json& pixels = squares.at(name).at("pixel_values");
    const ImageLayout l = layout(one, ImageSize{2344, 1025});
    EXPECT_EQ(pixels, json({l.tiles, 3, l.resized.height, l.resized.width})) << name;
    EXPECT_EQ(l.llm_tokens, 576) << name;
  }
  const json& high = squares.at("DeepseekVLHybridImageProcessor").at("high_res_pixel_values");
  EXPECT_EQ(high, json({1, 3, two.high_res_size, two.high_res_size}));
}

}  // namespace
}  // namespace vlmest::ocr_tokens_test
