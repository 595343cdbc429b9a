// SPDX-License-Identifier: Apache-2.0
// Models that take sound, out of their config.json: weights by name and shape, and what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/analysis/params.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::audio_configs_test {
namespace {

using test::read;
using test::refused_at;

TEST(AudioConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  for (const char* file : {"qwen2_audio.json", "qwen2_5_omni.json", "qwen3_omni_moe.json", "voxtral.json",
                           "glmasr.json", "qwen3_asr.json"})
    EXPECT_EQ(test::expect_recorded_parameters(file), 4) << file;
}

/// Elements of the encoder of sound.
std::int64_t audio_parameters(const Vlm& vlm) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  vlm.family.make_model(c);
  return vlmest::parameters(b.graph).audio.value();
}

TEST(AudioConfigs, TheEncoderIsAPartOfItsOwn) {
  EXPECT_EQ(audio_parameters(read(R"({"model_type": "qwen2_audio"})")), 636'968'960);
  EXPECT_EQ(audio_parameters(read(R"({"model_type": "qwen3_asr"})")), 314'328'704);
}

TEST(AudioConfigs, AnOmniModelIsItsThinker) {
  const Vlm whole = read(R"({"model_type": "qwen2_5_omni"})"),
            silent = read(R"({"model_type": "qwen2_5_omni", "enable_audio_output": false})");
  EXPECT_EQ(test::parameters(whole), test::parameters(silent));
  EXPECT_NE(whole.family.traits().note, "");
  EXPECT_EQ(silent.family.traits().note, "");
  EXPECT_EQ(whole.text.type, "qwen2_5_omni_text");
  EXPECT_EQ(read(R"({"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": {"hidden_size": 3584,
    "max_position_embeddings": 4096}}})")
                .positions,
            4096);
}

TEST(AudioConfigs, RefusesWhatIsNotModelled) {
  const std::string encoder = R"({"model_type": "qwen2_audio", "audio_config": )";
  EXPECT_EQ(refused_at(encoder + R"({"dropout": 0.1}})"), "config.json.audio_config.dropout");
  EXPECT_EQ(refused_at(encoder + R"({"encoder_layerdrop": 0.1}})"), "config.json.audio_config.encoder_layerdrop");
  EXPECT_EQ(refused_at(encoder + R"({"d_model": 30}})"), "config.json.audio_config.encoder_attention_heads");
  EXPECT_EQ(refused_at(encoder + R"({"model_type": "whisper"}})"), "config.json.audio_config.model_type");
  EXPECT_EQ(refused_at(R"({"model_type": "voxtral", "audio_config": {"intermediate_size": 5000}})"),
            "config.json.audio_config.intermediate_size");
  EXPECT_EQ(refused_at(R"({"model_type": "glmasr", "audio_config": {"intermediate_size": 2560}})"),
            "config.json.audio_config.intermediate_size");
  EXPECT_EQ(refused_at(R"({"model_type": "qwen3_asr", "audio_config": {"n_window": 200}})"),
            "config.json.audio_config.max_position_embeddings");
  EXPECT_EQ(refused_at(R"({"model_type": "qwen3_omni_moe_thinker", "text_config": {"hidden_size": 3584},
    "audio_config": {"max_source_positions": 12}})"),
            "config.json.audio_config.max_source_positions");
  EXPECT_EQ(refused_at(R"({"model_type": "qwen3_omni_moe_thinker", "text_config": {"hidden_size": 3584,
    "output_router_logits": true}})"),
            "config.json.text_config.output_router_logits");
}

/// What a checkpoint's file says of its feature extractor.
AudioLayout clip(const char* config, const char* file, double seconds) {
  Vlm m = read(config);
  json::read_processor(nlohmann::json::parse(file), "preprocessor_config.json", json::ProcessorFile::preprocessor, m);
  return audio_layout(m.audio, {seconds});
}

TEST(AudioConfigs, TheFeatureExtractorsLengthIsTheFiles) {
  const char* omni = R"({"model_type": "qwen2_5_omni_thinker"})";
  EXPECT_EQ(audio_layout(read(omni).audio, {45}).llm_tokens, 1125);
  EXPECT_EQ(clip(omni, R"({"chunk_length": 30, "feature_size": 128, "hop_length": 160})", 45).llm_tokens, 750);
  EXPECT_THROW(clip(omni, R"({"feature_size": 80})", 45), Error);
  EXPECT_THROW(clip(R"({"model_type": "qwen2_audio"})", R"({"chunk_length": 10})", 5), Error);
}

TEST(AudioConfigs, WindowsThatCannotBeMergedAreRefusedWhereTheFileSaysThem) {
  for (const char* file : {R"({"chunk_length": 7})", R"({"hop_length": 1024})"}) try {
      clip(R"({"model_type": "glmasr"})", file, 5);
      ADD_FAILURE() << file;
    } catch (const Error& e) {
      EXPECT_EQ(e.where, "preprocessor_config.json");
      EXPECT_NE(e.hint, "");
    }
}

TEST(AudioConfigs, AFeatureExtractorOfAnotherTypeIsNoObject) {
  Vlm m = read(R"({"model_type": "qwen2_audio"})");
  EXPECT_THROW(json::read_processor(nlohmann::json::parse(R"({"feature_extractor": [1]})"), "processor_config.json",
                                    json::ProcessorFile::processor, m),
               Error);
}

// feature_extraction_gemma4.py: frames from milliseconds, clips cut at 480000 samples whatever the file says.
TEST(AudioConfigs, Gemma4sFeatureExtractorCountsInMilliseconds) {
  const Vlm shipped = read(R"({"model_type": "gemma4", "audio_config": {}, "text_config": {}, "vision_config": {}})");
  const auto with = [&](const char* keys, double seconds) {
    Vlm m = shipped;
    json::read_processor(nlohmann::json::parse(keys), "processor_config.json", json::ProcessorFile::processor, m);
    return audio_layout(m.audio, {seconds});
  };
  const std::int64_t frames = audio_layout(shipped.audio, {45}).frames;
  EXPECT_EQ(with(R"({"feature_extractor": {"chunk_length": 10, "hop_length": 320, "frame_length": 640}})", 45).frames,
            frames);
  EXPECT_EQ(with(R"({"feature_extractor": {"hop_length_ms": 20.0}})", 45).frames, (frames + 1) / 2);
  EXPECT_THROW(with(R"({"feature_extractor": {"hop_length_ms": 0.0}})", 45), Error);
}

}  // namespace
}  // namespace vlmest::audio_configs_test
