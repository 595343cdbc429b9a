// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/perception_lm/family.hpp>
#include <vlmest/family/perception_lm/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::perception_lm_configs_test {
namespace {

using test::refused_at;

/// Of a tower of that architecture, with arguments for timm beside its width, and further keys of its own and outside.
std::string model(const std::string& arguments = {}, const std::string& vision = {}, const std::string& outside = {},
                  const std::string& architecture = "vit_pe_core_large_patch14_336") {
  const auto more = [](const std::string& keys) { return keys.empty() ? "" : ", " + keys; };
  return R"({"model_type": "perception_lm", "vision_config": {"architecture": ")" + architecture +
         R"(", "model_args": {"embed_dim": 1024)" + more(arguments) + "}" + more(vision) +
         R"(}, "text_config": {"model_type": "llama"})" + more(outside) + "}";
}
PerceptionLmFamily family(const std::string& json) { return get<PerceptionLmFamily>(test::read(json).family); }

TEST(PerceptionLmConfigs, WeightsHaveTheNamesAndShapesOfTheClass) {
  EXPECT_EQ(test::expect_recorded_parameters("perception_lm.json"), 22);
}

TEST(PerceptionLmConfigs, WhatArgumentsLeaveOutIsTheArchitecturesOwn) {
  const EvaVision core = family(model()).vision;
  EXPECT_EQ(core.layers, 24);
  EXPECT_EQ(core.image_size, 336);
  EXPECT_EQ(core.pool, EvaPool::attention);
  EXPECT_EQ(core.pool_heads, 8);
  EXPECT_TRUE(core.post_norm);
  EXPECT_FALSE(core.scaled);
  const EvaVision lang =
      family(model("", "", R"("vision_use_cls_token": false)", "vit_pe_lang_gigantic_patch14_448.fb")).vision;
  EXPECT_EQ(lang.layers, 47);
  EXPECT_EQ(lang.intermediate, 5973);  // int(1024 * 8960 / 1536)
  EXPECT_EQ(lang.pool, EvaPool::mean);
  EXPECT_FALSE(lang.post_norm);
  EXPECT_FALSE(lang.pool_norm);
  EXPECT_FALSE(lang.class_token);
  EXPECT_TRUE(lang.scaled);
  EXPECT_TRUE(family(model(R"("init_values": null, "global_pool": null)", "", "", "vit_pe_lang_large_patch14_448"))
                  .vision.scaled)
      << "null is left out";
}

// Eva.__init__: where nothing is said of the norms behind the layers, the pool decides which one there is.
TEST(PerceptionLmConfigs, NormsBehindTheLayersGoByThePool) {
  const auto norms = [](const std::string& arguments) {
    const EvaVision g = family(model(arguments)).vision;
    return std::pair{g.post_norm, g.pool_norm};
  };
  EXPECT_EQ(norms(R"("global_pool": "")"), std::pair(true, false));
  EXPECT_EQ(norms(R"("global_pool": "avg")"), std::pair(false, true));
  EXPECT_EQ(norms(R"("global_pool": "avg", "use_post_transformer_norm": true)"), std::pair(true, true));
  EXPECT_EQ(norms(R"("global_pool": "", "use_post_transformer_norm": false)"), std::pair(false, false));
}

TEST(PerceptionLmConfigs, TheHeadIsTiedWhereTheLanguageModelSaysSo) {
  const std::string tied = R"({"model_type": "perception_lm", "text_config": {"tie_word_embeddings": true},
      "vision_config": {"architecture": "vit_pe_core_large_patch14_336", "model_args": {"embed_dim": 1024}})";
  EXPECT_TRUE(family(tied + "}").tied);
  EXPECT_FALSE(family(tied + R"(, "tie_word_embeddings": false})").tied);
  EXPECT_FALSE(family(model()).tied);
}

TEST(PerceptionLmConfigs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model()), "accepted");
  const std::string vision = "config.json.vision_config.", arguments = vision + "model_args.";
  EXPECT_EQ(refused_at(R"({"model_type": "perception_lm"})"), vision + "architecture");
  EXPECT_EQ(refused_at(model("", "", "", "eva02_large_patch14_448")), vision + "architecture");
  EXPECT_EQ(refused_at(R"({"model_type": "perception_lm", "vision_config": {"architecture":
      "vit_pe_core_large_patch14_336"}})"),
            arguments + "embed_dim");
  for (const char* key : {"swiglu_mlp", "scale_mlp", "scale_attn_inner", "use_post_norm", "dynamic_img_size"})
    EXPECT_EQ(refused_at(model("\"" + std::string(key) + "\": true")), arguments + key);
  EXPECT_EQ(refused_at(model(R"("qkv_fused": false)")), arguments + "qkv_fused");
  EXPECT_EQ(refused_at(model(R"("num_reg_tokens": 4)")), arguments + "num_reg_tokens");
  EXPECT_EQ(refused_at(model(R"("patch_drop_rate": 0.5)")), arguments + "patch_drop_rate");
  EXPECT_EQ(refused_at(model(R"("rope_type": "mixed")")), arguments + "rope_type");
  EXPECT_EQ(refused_at(model(R"("attn_type": "eva")")), arguments + "attn_type");
  EXPECT_EQ(refused_at(model(R"("num_heads": 12)")), arguments + "num_heads");
  EXPECT_EQ(refused_at(model(R"("in_chans": 4)")), arguments + "in_chans");
  EXPECT_EQ(refused_at(model(R"("img_size": [336, 448])")), arguments + "img_size");
  EXPECT_EQ(refused_at(model(R"("img_size": 7)")), arguments + "img_size");
  EXPECT_EQ(refused_at(model(R"("mlp_ratio": 0)")), arguments + "mlp_ratio");
  EXPECT_EQ(refused_at(model(R"("global_pool": "sum")")), arguments + "global_pool");
  EXPECT_EQ(refused_at(model(R"("class_token": false)")), "config.json.vision_use_cls_token");
  EXPECT_EQ(refused_at(model(R"("class_token": false)", "", R"("vision_use_cls_token": false)")), "accepted");
  EXPECT_EQ(refused_at(model("", "", R"("vision_use_cls_token": false)")), "config.json.vision_use_cls_token");
  EXPECT_EQ(refused_at(model("", "", R"("projector_pooling_ratio": 25)")), "config.json.projector_pooling_ratio");
  EXPECT_EQ(refused_at(model("", R"("model_type": "timm_backbone")")), vision + "model_type");
}

// A file that the classes save, and what the wrapper takes over from timm's own.
TEST(PerceptionLmConfigs, WhatChangesNothingIsNotUnknown) {
  const Vlm m = test::read(model(
      R"("ref_feat_shape": [24, 24], "rope_grid_offset": 1.0, "init_values": 0.1, "global_pool": "")",
      R"("do_pooling": true, "initializer_range": 0.02, "num_classes": 0, "num_features": 1024, "global_pool": "map",
         "label_names": ["LABEL_0"], "pretrained_cfg": {"tag": "fb"}, "model_type": "timm_wrapper")",
      R"("image_token_id": 128002, "video_token_id": 128003)"));
  EXPECT_EQ(m.unread_keys, std::vector<std::string>{});
  EXPECT_EQ(test::read(model(R"("another_key": 1)")).unread_keys,
            (std::vector<std::string>{"vision_config.model_args.another_key"}));
}

TEST(PerceptionLmConfigs, ProcessorsMustAgreeWithTheConfig) {
  const auto read = [](const char* keys, json::ProcessorFile file = json::ProcessorFile::preprocessor) {
    Vlm m = test::read(model(R"("img_size": 448)", "", R"("projector_pooling_ratio": 2)"));
    json::read_processor(nlohmann::json::parse(keys), "preprocessor_config.json", file, m);
    return m;
  };
  EXPECT_THROW(read(R"({"tile_size": 336})"), Error);
  EXPECT_THROW(read(R"({"do_resize": false})"), Error);
  EXPECT_THROW(read(R"({"patch_size": 16})", json::ProcessorFile::processor), Error);
  EXPECT_THROW(read(R"({"pooling_ratio": 1})", json::ProcessorFile::processor), Error);
  const Vlm few = read(R"({"tile_size": 448, "max_num_tiles": 4, "size": {"height": 448, "width": 448}})");
  EXPECT_EQ(layout(few.image_processor, ImageSize{448, 448}).llm_tokens, 5 * 256);
  const Vlm one = read(R"({"vision_input_type": "vanilla"})");
  EXPECT_EQ(layout(one.image_processor, ImageSize{448, 448}).llm_tokens, 256);
}

}  // namespace
}  // namespace vlmest::perception_lm_configs_test
