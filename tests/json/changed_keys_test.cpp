// SPDX-License-Identifier: Apache-2.0
// Configs of every type that transformers has, with keys changed, left out or given by another name: each changes how
// many parameters transformers' class has.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "recorded_parameters.hpp"

namespace vlmest::changed_keys_test {
namespace {

using nlohmann::json;

/// "text_config.hidden_size"
json::json_pointer place(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return json::json_pointer("/" + path);
}

json changed(json config, const json& change) {
  if (change.contains("without"))
    for (const auto& path : change.at("without")) {
      const json::json_pointer at = place(path.get<std::string>());
      config.at(at.parent_pointer()).erase(at.back());
    }
  if (change.contains("set"))
    for (const auto& [path, value] : change.at("set").items()) config[place(path)] = value;
  return config;
}

TEST(ChangedKeys, CountAsTransformersClassesDo) {
  int types = 0, changes = 0;
  for (const json& type : test::recorded_parameters("changed_keys.json")) {
    const json& config = type.at("config");
    const auto total = type.at("total").get<std::int64_t>();
    EXPECT_EQ(test::parameters(test::read(config.dump())), total) << config.at("model_type");
    ++types;
    for (const json& change : type.at("changed")) {
      const auto expected = change.at("total").get<std::int64_t>();
      ASSERT_NE(expected, total);
      EXPECT_EQ(test::parameters(test::read(changed(config, change).dump())), expected)
          << config.at("model_type") << ": " << change;
      ++changes;
    }
  }
  EXPECT_EQ(types, 92);
  EXPECT_EQ(changes, 2199);
}

// What follows makes no model that transformers could build or run, or is not what the class does with it.
TEST(ChangedKeys, TwoNamesOfOneSettingSayOneThing) {
  const std::string heads =
      R"({"model_type": "qwen2_5_vl", "vision_config": {"num_heads": 16, "num_attention_heads": )";
  EXPECT_EQ(test::refused_at(heads + "16}}"), "accepted");
  EXPECT_EQ(test::refused_at(heads + "8}}"), "config.json.vision_config.num_attention_heads");
}

TEST(ChangedKeys, SizesThatAClassReckonsHaveToFit) {
  EXPECT_EQ(test::refused_at(R"({"model_type": "phi4_multimodal", "audio_config": {"nemo_final_size": 10}})"),
            "accepted");
  EXPECT_EQ(test::refused_at(R"({"model_type": "phi4_multimodal", "audio_config": {"nemo_final_size": 8}})"),
            "config.json.audio_config.nemo_final_size");
  EXPECT_EQ(test::refused_at(R"({"model_type": "minimax_m3_vl", "merged_hidden_size": 24576})"), "accepted");
  EXPECT_EQ(test::refused_at(R"({"model_type": "minimax_m3_vl", "merged_hidden_size": 6144})"),
            "config.json.merged_hidden_size");
}

}  // namespace
}  // namespace vlmest::changed_keys_test
