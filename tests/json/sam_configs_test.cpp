// SPDX-License-Identifier: Apache-2.0
// Models on SAM's tower, and Janus: what their classes declare, and configs that they cannot run.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/got_ocr2/rule.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::sam_configs_test {
namespace {

using test::read;
using test::refused_at;

TEST(GotOcr2Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("got_ocr2.json"), 13);
}
TEST(DeepseekOcr2Configs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("deepseek_ocr2.json"), 12);
}
/// Recorded from the checkpoint's own classes, whose count is half of total_size in its index.
TEST(DeepseekOcrConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("deepseek_ocr.json"), 1);
}
TEST(DeepseekOcrConfigs, ConfigsThatTheClassesCannotRunAreRefused) {
  const auto ocr = [](const std::string& width, const std::string& text = "") {
    return refused_at(R"({"model_type": "deepseek_vl_v2", "vision_config": {"width": )" + width +
                      R"(}, "hidden_size": 1280, "num_attention_heads": 10, "num_hidden_layers": 2, "use_mla": false,
                           "num_experts_per_tok": 6)" +
                      text + "}");
  };
  const std::string towers = R"({"clip-l-14-224": {}, "sam_vit_b": {}})";
  EXPECT_EQ(ocr(towers), "accepted");
  EXPECT_EQ(ocr("1152"), "config.json.vision_config.width") << "DeepSeek-VL2's SigLIP";
  EXPECT_EQ(ocr(towers, R"(, "scoring_func": "sigmoid")"), "config.json.scoring_func");
  EXPECT_EQ(ocr(towers, R"(, "norm_topk_prob": true)"), "config.json.norm_topk_prob");
  EXPECT_EQ(ocr(towers, R"(, "projector_config": {"n_embed": 1024})"), "config.json.projector_config.n_embed");
}
TEST(DeepseekVlConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("deepseek_vl.json"), 12);
}
TEST(DeepseekVlHybridConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("deepseek_vl_hybrid.json"), 12);
}
TEST(JanusConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("janus.json"), 14);
}

/// GOT-OCR 2.0 has mlp_dim alone, the others a ratio where it is absent.
TEST(SamConfigs, WidthOfTheMlp) {
  const auto mlp = [](const std::string& type, const std::string& key, const std::string& tower) {
    return test::parameters(R"({"model_type": ")" + type + R"(", ")" + key + R"(": {"num_hidden_layers": 1)" + tower +
                            "}}");
  };
  const std::int64_t got = mlp("got_ocr2", "vision_config", ""),
                     wider = mlp("got_ocr2", "vision_config", R"(, "mlp_dim": 3073)");
  EXPECT_EQ(wider - got, 2 * 768 + 1);
  EXPECT_EQ(mlp("got_ocr2", "vision_config", R"(, "mlp_ratio": 2.0)"), got);
  const std::string hybrid = "deepseek_vl_hybrid", high = "high_res_vision_config";
  const std::string first = R"(, "global_attn_indexes": [0])";
  EXPECT_EQ(mlp(hybrid, high, first) - mlp(hybrid, high, first + R"(, "mlp_ratio": 2.0)"), 1536 * (2 * 768 + 1));
  EXPECT_EQ(mlp(hybrid, high, first + R"(, "mlp_ratio": 2.0, "mlp_dim": 3072)"), mlp(hybrid, high, first));
}

TEST(SamConfigs, TokensOfAPictureThatIsCut) {
  Vlm m = read(R"({"model_type": "got_ocr2"})");
  EXPECT_EQ(layout(m.image_processor, ImageSize{2000, 1000}).llm_tokens, 256);
  EXPECT_EQ(layout(m.image_processor, ImageSize{2000, 1000}).text_overhead, 2);
  get<image_processor::GotOcr2>(m.image_processor).tiling = image_processor::Tiling::automatic;
  EXPECT_EQ(layout(m.image_processor, ImageSize{2000, 1000}).llm_tokens, 3 * 256) << "two tiles and the whole";
}

TEST(SamConfigs, ConfigsThatTheClassesCannotRunAreRefused) {
  const auto got = [](const std::string& tower) {
    return refused_at(R"({"model_type": "got_ocr2", "vision_config": {)" + tower + "}}");
  };
  EXPECT_EQ(got(R"("image_size": [1024, 1024])"), "config.json.vision_config.image_size") << "it is divided";
  EXPECT_EQ(got(R"("num_attention_heads": 7)"), "config.json.vision_config.num_attention_heads");
  EXPECT_EQ(got(R"("window_size": -1)"), "config.json.vision_config.window_size");
  EXPECT_EQ(got(R"("patch_size": 2048)"), "config.json.vision_config.patch_size");
  const auto hybrid = [](const std::string& key, const std::string& value) {
    return refused_at(R"({"model_type": "deepseek_vl_hybrid", ")" + key + R"(": {)" + value + "}}");
  };
  EXPECT_EQ(hybrid("high_res_vision_config", R"("model_type": "clip_vision_model")"),
            "config.json.high_res_vision_config.model_type");
  EXPECT_EQ(hybrid("high_res_vision_config", R"("num_hidden_layers": 2)"),
            "config.json.high_res_vision_config.global_attn_indexes");
  EXPECT_EQ(hybrid("vision_config", R"("model_type": "clip_vision_model")"), "config.json.vision_config.model_type");
}

TEST(DeepseekOcr2Configs, ConfigsThatTheClassesCannotRunAreRefused) {
  const auto ocr2 = [](const std::string& text, const std::string& vision = "") {
    return refused_at(R"({"model_type": "deepseek_ocr2", "text_config": {"num_hidden_layers": 2, )" + text +
                      R"(}, "vision_config": {"encoder_config": {"hidden_size": 896, "num_attention_heads": 14,
                           "num_key_value_heads": 2})" +
                      vision + "}}");
  };
  const std::string layers = R"("mlp_layer_types": ["dense", "sparse"])";
  EXPECT_EQ(ocr2(R"("num_experts_per_tok": 6, )" + layers), "accepted");
  EXPECT_EQ(ocr2(R"("num_experts_per_tok": 6)"), "config.json.text_config.mlp_layer_types");
  EXPECT_EQ(ocr2(R"("num_experts_per_tok": 6, "mlp_layer_types": ["dense", "moe"])"),
            "config.json.text_config.mlp_layer_types");
  EXPECT_EQ(ocr2(layers), "config.json.text_config.num_experts_per_tok");
  EXPECT_EQ(ocr2(R"("num_experts_per_tok": 6, "topk_method": "noaux_tc", )" + layers),
            "config.json.text_config.topk_method");
  EXPECT_EQ(ocr2(R"("num_experts_per_tok": 6, "topk_method": "group_limited_greedy", )" + layers),
            "config.json.text_config.n_group");
  EXPECT_EQ(ocr2(R"("num_experts_per_tok": 6, )" + layers, R"(, "sam_config": {"downsample_channels": [512, 1024]})"),
            "config.json.vision_config.sam_config.downsample_channels");
}

TEST(JanusConfigs, ConfigsThatTheClassesCannotRunAreRefused) {
  const auto janus = [](const std::string& vision, const std::string& vq = "", const std::string& text = "") {
    return refused_at(R"({"model_type": "janus", "vision_config": {)" + vision + R"(}, "vq_config": {)" + vq +
                      R"(}, "text_config": {"hidden_size": 2048, "num_attention_heads": 16)" + text + "}}");
  };
  EXPECT_EQ(janus(""), "accepted");
  EXPECT_EQ(janus(R"("use_qk_norm": true)"), "config.json.vision_config.use_qk_norm");
  EXPECT_EQ(janus(R"("projection_dim": 1024)"), "config.json.vision_config.projection_dim");
  EXPECT_EQ(janus("", R"("base_channels": 48)"), "config.json.vq_config.channel_multiplier");
}

}  // namespace
}  // namespace vlmest::sam_configs_test
