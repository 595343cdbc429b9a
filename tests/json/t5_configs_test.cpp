// SPDX-License-Identifier: Apache-2.0
// T5 inside BLIP-2: weights as transformers 5.17 names and shapes them, what absent keys mean, what is refused.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/blip2/t5.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::t5_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

const T5Config& language(const Vlm& v) { return get<Blip2T5Family>(v.family).language; }

// The classes tie every head when they are built; from_pretrained leaves one alone that a checkpoint has of its own.
TEST(T5Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  int checked = 0, apart = 0;
  for (const auto& e : test::recorded_parameters("blip2_t5.json")) {
    const Vlm vlm = read(e.at("config").dump());
    const T5Config& g = language(vlm);
    const std::int64_t head = g.tied ? 0 : g.vocab * g.hidden;
    apart += g.tied ? 0 : 1;
    EXPECT_EQ(parameters(vlm), e.at("total").get<std::int64_t>() + head) << e.at("name");
    auto expected = test::recorded_weights(e);
    if (expected.empty()) continue;
    if (!g.tied) expected["language_model.lm_head.weight"] = to_string(Shape{g.vocab, g.hidden});
    EXPECT_EQ(test::named_weights(vlm), expected) << e.at("name");
    ++checked;
  }
  EXPECT_EQ(checked, 6);
  EXPECT_EQ(apart, 5);
}

std::string blip(const std::string& text, const std::string& more = "") {
  return R"({"model_type": "blip-2", "text_config": {"model_type": "t5")" + text + "}" + more + "}";
}

TEST(T5Configs, KeysOfTheirOwnOverrideTheProjection) {
  const auto of = [](const std::string& text) { return language(read(blip(text))); };
  EXPECT_EQ(of("").activation, Activation::relu);
  EXPECT_FALSE(of("").gated);
  EXPECT_EQ(of(R"(, "feed_forward_proj": "gated-gelu")").activation, Activation::gelu_new);
  EXPECT_TRUE(of(R"(, "feed_forward_proj": "gated-gelu")").gated);
  EXPECT_EQ(of(R"(, "feed_forward_proj": "gelu")").activation, Activation::gelu);
  EXPECT_EQ(of(R"(, "feed_forward_proj": "gated-silu")").activation, Activation::silu);
  const T5Config flan = of(R"(, "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu", "is_gated_act": true)");
  EXPECT_EQ(flan.activation, Activation::gelu);
  EXPECT_TRUE(flan.gated);
}

TEST(T5Configs, AnUntiedHeadIsNotScaled) {
  const auto of = [](const std::string& text) { return language(read(blip(text))); };
  EXPECT_TRUE(of("").tied && of("").scaled);
  EXPECT_FALSE(of(R"(, "tie_word_embeddings": false)").tied || of(R"(, "tie_word_embeddings": false)").scaled);
  // As transformers 5 writes a config that it read as that.
  const T5Config saved = of(R"(, "tie_word_embeddings": true, "scale_decoder_outputs": false)");
  EXPECT_FALSE(saved.tied || saved.scaled);
}

TEST(T5Configs, TheDecoderIsAsDeepAsTheEncoderUnlessItSays) {
  const auto of = [](const std::string& text) { return language(read(blip(text))); };
  EXPECT_EQ(of(R"(, "num_layers": 5)").decoder_layers, 5);
  EXPECT_EQ(of(R"(, "num_layers": 5, "num_decoder_layers": null)").decoder_layers, 5);
  EXPECT_EQ(of(R"(, "num_layers": 5, "num_decoder_layers": 2)").decoder_layers, 2);
}

TEST(T5Configs, WrongValuesAreRefusedWhereTheyStand) {
  const std::string text = "config.json.text_config.";
  EXPECT_EQ(refused_at(blip("")), "accepted");
  EXPECT_EQ(refused_at(blip("", R"(, "use_decoder_only_language_model": false)")), "accepted");
  EXPECT_EQ(refused_at(blip("", R"(, "use_decoder_only_language_model": true)")),
            "config.json.use_decoder_only_language_model");
  EXPECT_EQ(refused_at(blip(R"(, "feed_forward_proj": "gated-gelu-new")")), text + "feed_forward_proj");
  EXPECT_EQ(refused_at(blip(R"(, "feed_forward_proj": "plain-gelu")")), text + "feed_forward_proj");
  EXPECT_EQ(refused_at(blip(R"(, "num_heads": 0)")), text + "num_heads");
  EXPECT_EQ(refused_at(blip(R"(, "num_decoder_layers": 0)")), text + "num_decoder_layers");
  EXPECT_EQ(refused_at(blip(R"(, "relative_attention_num_buckets": 1)")), text + "relative_attention_num_buckets");
  EXPECT_EQ(refused_at(blip(R"(, "dropout_rate": 2)")), text + "dropout_rate");
  EXPECT_EQ(refused_at(blip(R"(, "is_encoder_decoder": false)")), text + "is_encoder_decoder");
}

}  // namespace
}  // namespace vlmest::t5_configs_test
