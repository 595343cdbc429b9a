// SPDX-License-Identifier: Apache-2.0
// InstructBLIP: weights as transformers 5.17 names and shapes them, what absent keys mean, what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/t5.hpp>
#include <vlmest/family/blip2/video_rule.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::instructblip_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

/// Of the classes, which tie T5's head whatever the config says; the reader gives it one where a checkpoint has one.
int expect_classes(const std::string& file) {
  int named = 0;
  for (const auto& e : test::recorded_parameters(file)) {
    const Vlm vlm = read(e.at("config").dump());
    std::int64_t head = 0;
    if (const auto* t5 = get_if<Blip2T5Family>(&vlm.family); t5 != nullptr && !t5->language.tied)
      head = t5->language.vocab * t5->language.hidden;
    EXPECT_EQ(parameters(vlm), e.at("total").get<std::int64_t>() + head) << e.at("name");
    const auto expected = test::recorded_weights(e);
    if (expected.empty()) continue;
    EXPECT_EQ(test::named_weights(vlm), expected) << e.at("name");
    ++named;
  }
  return named;
}

TEST(InstructBlipConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(expect_classes("instructblip.json"), 6);
  EXPECT_EQ(expect_classes("instructblipvideo.json"), 6);
}

std::string model(const std::string& qformer = "", const std::string& text = R"("model_type": "llama")",
                  const std::string& more = "", const std::string& type = "instructblip") {
  return R"({"model_type": ")" + type + R"(", "qformer_config": {)" + qformer + R"(}, "text_config": {)" + text + "}" +
         more + "}";
}

TEST(InstructBlipConfigs, TheQFormersTextHasSizesOfItsOwn) {
  const auto of = [](const std::string& q) { return get<Blip2DecoderFamily>(read(model(q)).family).qformer; };
  EXPECT_TRUE(of("").instructed);
  EXPECT_EQ(of("").vocab, 30522);
  EXPECT_EQ(of("").positions, 512);
  EXPECT_EQ(of(R"("vocab_size": 77)").vocab, 77);
  EXPECT_EQ(read(model(R"("max_position_embeddings": 33)")).family.traits().instruction, 33);
  // The key is another class's: text has its MLP whatever it says.
  EXPECT_EQ(parameters(model(R"("use_qformer_text_input": false)")), parameters(model()));
  EXPECT_EQ(read(R"({"model_type": "blip-2"})").family.traits().instruction, 0);
}

TEST(InstructBlipConfigs, TheLanguageModelIsOptUnlessItSays) {
  const Vlm opt = read(R"({"model_type": "instructblip"})"), llama = read(model());
  const Vlm t5 = read(model("", R"("model_type": "t5")"));
  EXPECT_NE(get_if<Blip2Family>(&opt.family), nullptr);
  EXPECT_NE(get_if<Blip2DecoderFamily>(&llama.family), nullptr);
  EXPECT_NE(get_if<Blip2T5Family>(&t5.family), nullptr);
}

TEST(InstructBlipConfigs, TheHeadIsTiedByTheLanguageModelsKeyAlone) {
  const auto tied = [](const std::string& text, const std::string& more = "") {
    return get<Blip2DecoderFamily>(read(model("", R"("model_type": "llama")" + text, more)).family).tied;
  };
  EXPECT_FALSE(tied(""));
  EXPECT_TRUE(tied(R"(, "tie_word_embeddings": true)"));
  EXPECT_FALSE(tied("", R"(, "tie_word_embeddings": true)"));
}

TEST(InstructBlipConfigs, VideosAreATypeOfTheirOwn) {
  const Vlm v = read(model("", R"("model_type": "llama")", "", "instructblipvideo"));
  EXPECT_EQ(v.type, "instructblipvideo");
  EXPECT_EQ(v.family.traits().videos, VideoPixels::own);
  EXPECT_EQ(read(model()).family.traits().videos, VideoPixels::refused);
  EXPECT_EQ(video_layout(v.image_processor, {.size = {48, 64}, .frames = 4, .fps = 2}).llm_tokens, 4 * 32);
}

TEST(InstructBlipConfigs, WrongValuesAreRefusedWhereTheyStand) {
  EXPECT_EQ(refused_at(model()), "accepted");
  EXPECT_EQ(refused_at(model("", R"("model_type": "mistral")")), "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(R"({"model_type": "blip-2", "text_config": {"model_type": "llama"}})"),
            "config.json.text_config.model_type");
  EXPECT_EQ(refused_at(model("", R"("model_type": "llama")", R"(, "use_decoder_only_language_model": false)")),
            "config.json.use_decoder_only_language_model");
  EXPECT_EQ(refused_at(model("", R"("model_type": "opt", "word_embed_proj_dim": 512)")),
            "config.json.text_config.word_embed_proj_dim");
  EXPECT_EQ(refused_at(model(R"("vocab_size": 0)")), "config.json.qformer_config.vocab_size");
  EXPECT_EQ(refused_at(model(R"("max_position_embeddings": 0)")), "config.json.qformer_config.max_position_embeddings");
  EXPECT_EQ(refused_at(model(R"("cross_attention_frequency": 0)")),
            "config.json.qformer_config.cross_attention_frequency");
  EXPECT_EQ(refused_at(model("", R"("model_type": "llama")", R"(, "num_query_tokens": 0)")),
            "config.json.num_query_tokens");
}

}  // namespace
}  // namespace vlmest::instructblip_configs_test
