// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/aria/family.hpp>
#include <vlmest/family/aria/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::aria_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

/// The released sizes, with further keys of the whole, of the tower and of the language model.
std::string model(const std::string& more = "", const std::string& vision = "", const std::string& text = "") {
  return R"({"model_type": "aria", "vision_config": {"patch_size": 14, "image_size": 980)" + vision +
         R"(}, "text_config": {"model_type": "aria_text", "hidden_size": 2560, "num_attention_heads": 20)" + text +
         "}" + more + "}";
}

TEST(AriaConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("aria.json"), 6);
}

TEST(AriaConfigs, TheLanguageModelIsReadAlone) {
  const std::string text =
      R"("model_type": "aria_text", "hidden_size": 64, "intermediate_size": 32, "num_attention_heads": 4,
         "num_hidden_layers": 2, "vocab_size": 100, "moe_num_experts": 3, "moe_topk": 2, "moe_num_shared_experts": 2)";
  const std::int64_t attention = 4 * 64 * 64, experts = 3 * (64 * 64 + 32 * 64), shared = 3 * 64 * 64, router = 3 * 64;
  EXPECT_EQ(parameters("{" + text + "}"), 2 * 100 * 64 + 2 * (attention + experts + shared + router + 2 * 64) + 64);
}

TEST(AriaConfigs, WhatIsReadDecides) {
  const auto family = [](const std::string& text) { return get<AriaFamily>(read(text).family); };
  EXPECT_EQ(family(model()).feature_layer, -1);
  EXPECT_EQ(family(model(R"(, "vision_feature_layer": -2)")).feature_layer, -2);
  EXPECT_EQ(family(model()).projector.queries, (std::map<std::int64_t, std::int64_t>{{1225, 128}, {4900, 256}}));
  EXPECT_EQ(family(model(R"(, "projector_patch_to_query_dict": {"4900": 300})")).projector.most(), 300);
  EXPECT_EQ(get<image_processor::Aria>(read(model("", R"(, "patch_size": 7)")).image_processor).patch_size, 7);
  // The queries are as many as the largest number, whatever a picture needs.
  EXPECT_EQ(parameters(model(R"(, "projector_patch_to_query_dict": {"4900": 300, "9": 301})")) - parameters(model()),
            (301 - 256) * 1152);
}

TEST(AriaConfigs, WhatCannotRunIsRefused) {
  const std::string at = "config.json.";
  EXPECT_EQ(refused_at(R"({"model_type": "aria"})"), "accepted");
  EXPECT_EQ(refused_at(model()), "accepted");
  EXPECT_EQ(refused_at(model("", R"(, "model_type": "siglip_vision_model")")), "accepted") << "it is overwritten";
  EXPECT_EQ(refused_at(model("", R"(, "attention_dropout": 0.1)")), at + "vision_config.attention_dropout");
  EXPECT_EQ(refused_at(model("", R"(, "num_attention_heads": 7)")), at + "vision_config.num_attention_heads");
  EXPECT_EQ(refused_at(model(R"(, "vision_feature_layer": [-1])")), at + "vision_feature_layer");
  EXPECT_EQ(refused_at(model(R"(, "vision_feature_layer": 13)")), at + "vision_feature_layer");
  EXPECT_EQ(refused_at(model(R"(, "vision_feature_layer": -14)")), at + "vision_feature_layer");
  EXPECT_EQ(refused_at(model("", "", R"(, "moe_topk": 9)")), at + "text_config.moe_topk");
  EXPECT_EQ(refused_at(model("", "", R"(, "moe_num_experts": 1023, "num_hidden_layers": 65)")),
            at + "text_config.moe_num_experts");
  EXPECT_EQ(refused_at(model("", "", R"(, "moe_num_experts": 0)")), at + "text_config.moe_num_experts");
  EXPECT_EQ(refused_at(model("", "", R"(, "moe_num_shared_experts": 0)")), at + "text_config.moe_num_shared_experts");
  EXPECT_EQ(refused_at(model("", "", R"(, "num_attention_heads": 24, "head_dim": 128)")),
            at + "text_config.num_attention_heads");
  EXPECT_EQ(refused_at(R"({"model_type": "aria", "text_config": {"model_type": "llama"}})"),
            at + "text_config.model_type");
  EXPECT_EQ(refused_at(R"({"model_type": "aria", "text_config": {}})"), at + "text_config.model_type");
  const auto queries = [&](const std::string& map) {
    return refused_at(model(R"(, "projector_patch_to_query_dict": )" + map));
  };
  EXPECT_EQ(queries("null"), "accepted");
  EXPECT_EQ(queries("{}"), at + "projector_patch_to_query_dict");
  EXPECT_EQ(queries("[1]"), at + "projector_patch_to_query_dict");
  EXPECT_EQ(queries(R"({"many": 1})"), at + "projector_patch_to_query_dict");
  EXPECT_EQ(queries(R"({"99999999999999999999": 1})"), at + "projector_patch_to_query_dict");
  EXPECT_EQ(queries(R"({"4900": 0})"), at + "projector_patch_to_query_dict.4900");
  EXPECT_EQ(queries(R"({"4900": null})"), at + "projector_patch_to_query_dict.4900");
}

/// Sets the rule as a file does; where it is refused, or what is said.
std::string said(const std::string& file, json::ProcessorFile kind, image_processor::Aria& rule) {
  Vlm vlm = read(model());
  std::string lines;
  try {
    for (const std::string& line : json::read_processor(nlohmann::json::parse(file), "file", kind, vlm))
      lines += line + "\n";
  } catch (const Error& e) {
    return e.where;
  }
  rule = get<image_processor::Aria>(vlm.image_processor);
  return lines;
}

// AriaProcessor passes 980 pixels and no splitting to every call, whatever the file says.
TEST(AriaConfigs, TheImageProcessorsFile) {
  image_processor::Aria rule;
  const auto image = [&](const std::string& keys) {
    return said("{" + keys + "}", json::ProcessorFile::preprocessor, rule);
  };
  EXPECT_EQ(image(R"("max_image_size": 980, "split_image": false)"), "");
  EXPECT_NE(image(R"("max_image_size": 490)").find("passes 980"), std::string::npos);
  EXPECT_EQ(rule.image_size, 980);
  EXPECT_NE(image(R"("split_image": true)").find("stay whole"), std::string::npos);
  EXPECT_EQ(rule.tiling, image_processor::Tiling::never);
  EXPECT_EQ(image(R"("max_image_size": 448)"), "file.max_image_size");
  EXPECT_EQ(image(R"("min_image_size": 500)"), "");
  EXPECT_EQ(rule.min_size, 500);
  EXPECT_EQ(image(R"("min_image_size": 981)"), "file.min_image_size");
  EXPECT_EQ(image(R"("split_resolutions": [[490, 980]])"), "");
  EXPECT_EQ(rule.canvases, (std::vector<ImageSize>{{490, 980}}));
  for (const char* list : {"7", "[]", "[7]", "[[490]]", "[[490, -1]]", "[[490, 0]]", "[[490, 99999999999]]"})
    EXPECT_EQ(image(R"("split_resolutions": )" + std::string(list)), "file.split_resolutions") << list;
}

TEST(AriaConfigs, TheProcessorsFileMustHaveTheModelsTokens) {
  image_processor::Aria rule;
  const auto outer = [&](const std::string& keys) {
    return said("{" + keys + "}", json::ProcessorFile::processor, rule);
  };
  EXPECT_EQ(outer(R"("size_conversion": {"490": 128, "980": 256})"), "");
  EXPECT_EQ(outer(R"("size_conversion": {"980": 128})"), "file.size_conversion.980");
  EXPECT_EQ(outer(R"("size_conversion": {"490": 128})"), "file.size_conversion.980");
  EXPECT_EQ(outer(R"("size_conversion": [980])"), "file.size_conversion");
}

}  // namespace
}  // namespace vlmest::aria_configs_test
