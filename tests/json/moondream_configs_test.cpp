// SPDX-License-Identifier: Apache-2.0
// Moondream's config.json, its pictures and its weights against its own code.
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/moondream/family.hpp>
#include <vlmest/family/moondream/rule.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::moondream_configs_test {
namespace {

using test::refused_at;

std::string sizes(const std::string& part, const std::string& keys) {
  return R"({"model_type": "moondream1", "config": {")" + part + R"(": {)" + keys + "}}}";
}

TEST(MoondreamConfigs, WeightsHaveTheNamesAndShapesOfTheModules) {
  EXPECT_EQ(test::expect_recorded_parameters("moondream.json"), 1);
}

TEST(MoondreamConfigs, PicturesAreCutAsByTheCheckpointsCode) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/moondream_tilings.json");
  const nlohmann::json d = nlohmann::json::parse(in);
  int checked = 0;
  for (const auto& s : d.at("settings")) {
    const image_processor::Moondream rule{.max_tiles = s.at("max_crops"), .margin = s.at("overlap_margin")};
    for (std::size_t i = 0; i < d.at("sizes").size(); ++i, ++checked) {
      const auto& size = d.at("sizes").at(i);
      const ImageLayout l = layout(rule, ImageSize{size.at(0), size.at(1)});
      const auto& t = s.at("tilings").at(i);
      EXPECT_EQ(l.tile_grid, (Grid{t.at(0), t.at(1)})) << size << " " << s.at("max_crops");
      EXPECT_EQ(l.tiles, l.tile_grid.count() + 1);
      EXPECT_EQ(l.llm_tokens, 729);
    }
  }
  EXPECT_EQ(checked, 4 * 260);
}

// config_md05.json of the code's repository leaves n_kv_heads at 32 beside 16 heads: its attention stops.
TEST(MoondreamConfigs, WhatTheCodeStopsAtIsRefused) {
  EXPECT_EQ(refused_at(sizes("text", R"("dim": 1024, "n_heads": 16)")), "config.json.config.text.n_kv_heads");
  EXPECT_EQ(refused_at(sizes("text", R"("dim": 1024)")), "config.json.config.text.n_heads");
  EXPECT_EQ(refused_at(sizes("text", R"("max_context": 4096)")), "config.json.config.text.max_context");
  EXPECT_EQ(refused_at(sizes("text", R"("group_size": 128)")), "config.json.config.text.group_size");
  EXPECT_EQ(refused_at(sizes("text", R"("moe": {})")), "config.json.config.text.moe");
  EXPECT_EQ(refused_at(sizes("vision", R"("enc_n_layers": 26)")), "config.json.config.vision.enc_n_layers");
  EXPECT_EQ(refused_at(sizes("vision", R"("proj_out_dim": 1024)")), "config.json.config.vision.proj_out_dim");
  EXPECT_EQ(refused_at(sizes("region", R"("dim": 1024)")), "config.json.config.region.dim");
  EXPECT_EQ(refused_at(R"({"model_type": "moondream1", "text_config": {"model_type": "phi"}})"),
            "config.json.text_config");
}

}  // namespace
}  // namespace vlmest::moondream_configs_test
