// SPDX-License-Identifier: Apache-2.0
// What a config.json holds that no reader knows is named, with the object it stands in; what is read, and what changes
// nothing, is not.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/json/model.hpp>

namespace vlmest::unread_keys_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Names = std::vector<std::string>;

const fs::path root = VLMEST_SOURCE_DIR;

Json load(const fs::path& path) {
  std::ifstream in(path);
  return Json::parse(in);
}
Names unread(const Json& document) { return json::read_model(document, "config.json").unread_keys; }

/// LLaVA with some keys beside its own.
Json llava(const Json& more) {
  Json j = load(root / "tests/data/configs/llava-next-vicuna-7b.json");
  j.merge_patch(more);
  return j;
}

TEST(UnreadKeys, UnknownOnesAreNamedWhereTheyStand) {
  EXPECT_EQ(unread(llava({{"resampler_tokens", 64},
                          {"text_config", {{"mixture_layers", {1, 2}}, {"rope_scaling", {{"waves", 3}}}}},
                          {"vision_config", {{"registers", 4}}}})),
            (Names{"resampler_tokens", "text_config.mixture_layers", "text_config.rope_scaling.waves",
                   "vision_config.registers"}));
}

TEST(UnreadKeys, APartThatNobodyEntersIsNamedAsAWhole) {
  EXPECT_EQ(unread(llava({{"audio_config", {{"hidden_size", 4}, {"layers", 2}}}})), Names{"audio_config"});
}

TEST(UnreadKeys, SomeAreHarmlessWithOneValueAlone) {
  EXPECT_EQ(unread(llava({{"output_attentions", false}, {"num_beams", 1}, {"text_config", {{"hidden_dropout", 0.0}}}})),
            Names{});
  EXPECT_EQ(unread(llava({{"output_attentions", true}, {"num_beams", 4}, {"text_config", {{"hidden_dropout", 0.1}}}})),
            (Names{"num_beams", "output_attentions", "text_config.hidden_dropout"}));
}

TEST(UnreadKeys, NullIsAsGoodAsAbsent) { EXPECT_EQ(unread(llava({{"registers", nullptr}})), Names{}); }

TEST(UnreadKeys, FrequenciesAreNumbersTheirCountIsNot) {
  const auto rope = [](const Json& more) { return llava({{"text_config", {{"rope_scaling", more}}}}); };
  EXPECT_EQ(unread(rope({{"rope_type", "llama3"}, {"factor", 8.0}, {"original_max_position_embeddings", 8192}})),
            Names{});
  EXPECT_EQ(unread(rope({{"rope_type", "linear"}, {"partial_rotary_factor", 0.5}})),
            Names{"text_config.rope_scaling.partial_rotary_factor"});
}

/// Of a description "model" alone is a config.json; its own keys are its reader's.
TEST(UnreadKeys, OfADescription) {
  EXPECT_EQ(unread({{"name", "x"}, {"model", llava({{"registers", 4}})}}), Names{"registers"});
}

/// What was published, or written for a trace, holds nothing that is not known.
TEST(UnreadKeys, NoneInFilesThatWereCompared) {
  int files = 0, refused = 0;
  for (const char* folder : {"models/vlm", "tests/data/configs", "tests/data/language_models"})
    for (const auto& e : fs::directory_iterator(root / folder)) {
      if (e.path().extension() != ".json") continue;
      ++files;
      try {
        EXPECT_EQ(unread(load(e.path())), Names{}) << e.path();
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GE(files, 300);
  EXPECT_LE(refused, 1) << "a config whose layers its traces cut";
}

TEST(UnreadKeys, NamesCanBeShown) {
  EXPECT_EQ(unread(llava({{"\x1b[31m\xc3\xa4", 1}})), Names{"?[31m??"});
  EXPECT_EQ(unread(llava({{std::string(100, 'x'), 1}})), Names{std::string(64, 'x')});
}

/// Files with what the code that trained the models, and older versions of the library, left in them.
TEST(UnreadKeys, InPublishedFiles) {
  const Json files = load(root / "tests/data/published_keys.json");
  EXPECT_EQ(files["files"].size(), 3u);
  for (const Json& file : files["files"]) EXPECT_EQ(unread(file["config"]), file["unread"].get<Names>()) << file["id"];
}

TEST(UnreadKeys, WhatWouldChangeTheModelIsRefused) {
  Json intern = load(root / "tests/data/published_keys.json")["files"][0]["config"];
  for (const auto& [part, key, value] :
       {std::tuple{"vision_config", "use_moe", Json(true)}, {"", "use_llm_lora", Json(128)}}) {
    Json changed = intern;
    (*part == '\0' ? changed : changed[part])[key] = value;
    EXPECT_THROW(unread(changed), Error) << key;
  }
}

}  // namespace
}  // namespace vlmest::unread_keys_test
