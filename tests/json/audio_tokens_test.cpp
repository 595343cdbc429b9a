// SPDX-License-Identifier: Apache-2.0
// How seconds become tokens, held to the processors of transformers (tests/data/audio_tokens.json says which).
#include <fstream>

#include <gtest/gtest.h>

#include <vlmest/json/model.hpp>

namespace vlmest::audio_tokens_test {
namespace {

using Json = nlohmann::json;

Vlm model(const std::string& type) {
  Json config{{"model_type", type == "qwen2_5_omni" || type == "qwen3_omni_moe" ? type + "_thinker" : type}};
  if (type == "gemma4") config.update(Json{{"audio_config", Json::object()}, {"vision_config", Json::object()}});
  if (type == "qwen3_omni_moe") config["text_config"]["hidden_size"] = 3584;
  Vlm vlm = json::read_model(config, type);
  if (type == "qwen2_5_omni") vlm.audio.mel()->chunk_samples = 480000;
  return vlm;
}

TEST(AudioTokens, AreThoseOfTheProcessors) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/audio_tokens.json");
  const Json data = Json::parse(in);
  std::size_t clips = 0;
  for (const auto& [type, rows] : data.at("clips").items()) {
    const Vlm vlm = model(type);
    for (const Json& row : rows) {
      ++clips;
      const std::string what = type + " " + row.dump();
      const AudioSource source{row.at(0).get<double>() / 16000};
      if (row.at(1).is_null()) {
        EXPECT_THROW(audio_layout(vlm.audio, source), Error) << what;
        continue;
      }
      const AudioLayout l = audio_layout(vlm.audio, source);
      EXPECT_EQ(l.llm_tokens, row.at(1)) << what;
      EXPECT_EQ(l.rows, row.at(2)) << what;
      EXPECT_EQ(l.row_frames, row.at(3)) << what;
      if (row.size() > 4) {
        EXPECT_EQ(l.frames, row.at(4)) << what;
      }
    }
  }
  EXPECT_EQ(clips, 680u);
}

}  // namespace
}  // namespace vlmest::audio_tokens_test
