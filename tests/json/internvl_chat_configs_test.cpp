// SPDX-License-Identifier: Apache-2.0
// InternVL's own config keys against the same models in transformers' keys, and ViP-LLaVA.
#include <array>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/internvl/h2ovl_rule.hpp>

#include "config_support.hpp"

namespace vlmest::internvl_chat_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

/// config.json of OpenGVLab/InternVL3-8B, the keys that are read and some that are not.
const std::string tail = R"("downsample_ratio": 0.5, "dynamic_image_size": true, "force_image_size": 448,
    "image_fold": null, "max_dynamic_patch": 12, "min_dynamic_patch": 1, "pad2square": false, "ps_version": "v2",
    "select_layer": -1, "template": "internvl2_5", "use_backbone_lora": 0, "use_llm_lora": 0, "use_thumbnail": true})";
const std::string tower = R"("vision_config": {"architectures": ["InternVisionModel"], "attention_dropout": 0.0,
    "drop_path_rate": 0.1, "hidden_act": "gelu", "hidden_size": 1024, "image_size": 448, "intermediate_size": 4096,
    "layer_norm_eps": 1e-06, "model_type": "intern_vit_6b", "norm_type": "layer_norm", "num_attention_heads": 16,
    "num_channels": 3, "num_hidden_layers": 24, "patch_size": 14, "qk_normalization": false, "qkv_bias": true,
    "use_flash_attn": true}, )";
const std::string tower_6b = R"("vision_config": {"hidden_size": 3200, "image_size": 448, "intermediate_size": 12800,
    "norm_type": "rms_norm", "num_attention_heads": 25, "num_hidden_layers": 45, "patch_size": 14,
    "qk_normalization": true, "qkv_bias": false}, )";
std::string chat(const std::string& vision, const std::string& llm) {
  return R"({"model_type": "internvl_chat", )" + vision + R"("llm_config": {)" + llm + "}, " + tail;
}
const std::string qwen2_7b = R"("model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 151674)";

TEST(InternVlChat, CountsWhatThePortCounts) {
  EXPECT_EQ(parameters(chat(tower, qwen2_7b)), 7944373760);  // InternVL3-8B
  EXPECT_EQ(parameters(chat(tower_6b, R"("model_type": "qwen2", "hidden_size": 5120, "intermediate_size": 27648,
    "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8, "vocab_size": 151674)")),
            38388164992);  // InternVL3-38B
  EXPECT_EQ(parameters(chat(tower, R"("model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936)")),
            1060897792);  // InternVL3.5-1B
  // The tower, the projector (a norm of 4096, 4096 to 2048, 2048 to 2048) and Qwen3-30B-A3B.
  EXPECT_EQ(parameters(chat(tower, R"("model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "vocab_size": 151936)")),
            304012288 + 12595200 + 30532122624);
}

TEST(InternVlChat, TheLanguageModelsOwnKeyTies) {
  EXPECT_EQ(parameters(chat(tower, qwen2_7b)) - parameters(chat(tower, qwen2_7b + R"(, "tie_word_embeddings": true)")),
            std::int64_t{151674} * 3584);
}

/// What dynamic_preprocess() of the checkpoints' README gives for these sizes (height, width), thumbnail included.
TEST(InternVlChat, CutsPicturesAsItsOwnCode) {
  struct Case {
    ImageSize size;
    std::int64_t up_to_12, up_to_6, without_thumbnail, from_4_to_8;
  };
  const Vlm vlm = read(chat(tower, qwen2_7b));
  const auto tiles = [&](ImageSize s, std::int64_t least, std::int64_t most, bool thumbnail) {
    auto rule = get<image_processor::InternVl>(vlm.image_processor);
    rule.min_tiles = least;
    rule.max_tiles = most;
    rule.thumbnail = thumbnail;
    const ImageLayout l = image_processor::layout(rule, s);
    EXPECT_EQ(l.llm_tokens, 256 * l.tiles);
    EXPECT_EQ(l.text_overhead, 2);
    return l.tiles;
  };
  for (const Case& c : {Case{{448, 448}, 1, 1, 1, 5},
                        {{224, 224}, 1, 1, 1, 5},
                        {{1344, 448}, 4, 4, 3, 5},
                        {{480, 640}, 13, 7, 12, 7},
                        {{640, 480}, 13, 7, 12, 7},
                        {{720, 1280}, 9, 3, 8, 9},
                        {{2160, 3840}, 9, 3, 8, 9},
                        {{300, 1200}, 5, 5, 4, 5},
                        {{896, 896}, 5, 5, 4, 5},
                        {{1000, 1500}, 7, 7, 6, 7},
                        {{97, 1811}, 13, 7, 12, 9}}) {
    EXPECT_EQ(tiles(c.size, 1, 12, true), c.up_to_12) << c.size.height;
    EXPECT_EQ(tiles(c.size, 1, 6, true), c.up_to_6) << c.size.height;
    EXPECT_EQ(tiles(c.size, 1, 12, false), c.without_thumbnail) << c.size.height;
    EXPECT_EQ(tiles(c.size, 4, 8, true), c.from_4_to_8) << c.size.height;
  }
}

TEST(InternVlChat, ReadsItsTiles) {
  const auto rule = get<image_processor::InternVl>(read(chat(tower, qwen2_7b)).image_processor);
  EXPECT_EQ(rule.max_tiles, 12);
  EXPECT_TRUE(rule.thumbnail);
  EXPECT_EQ(rule.tiling, image_processor::Tiling::automatic);
  const auto absent = get<image_processor::InternVl>(
      read(R"({"model_type": "internvl_chat", "ps_version": "v2", "llm_config": {"model_type": "llama"},
           "vision_config": {"image_size": 448}})")
          .image_processor);
  EXPECT_EQ(absent.min_tiles, 1);
  EXPECT_EQ(absent.max_tiles, 6);
  EXPECT_FALSE(absent.thumbnail);
  EXPECT_EQ(absent.tiling, image_processor::Tiling::never);
}

/// H2OVL-Mississippi's keys: InternVL's and use_msac. Danube is a Mistral.
const std::string h2ovl = R"({"model_type": "h2ovl_chat", )" + tower + R"("llm_config": {"model_type": "mistral",
    "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers": 24, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 32010}, "use_msac": true, )" +
                          tail;

TEST(H2ovlChat, IsInternVlOverAMistral) {
  // Embeddings and head; layers of attention (32 heads and 8 of 80), MLP and two norms; the last norm.
  const std::int64_t layer = 2 * 2560 * 2560 + 2 * 640 * 2560 + 3 * 2560 * 6912 + 2 * 2560;
  const std::int64_t language = 2 * std::int64_t{32010} * 2560 + 24 * layer + 2560;
  const std::int64_t projector = 2 * 4096 + (4096 + 1) * 2560 + (2560 + 1) * 2560;
  EXPECT_EQ(parameters(h2ovl), 304012288 + projector + language);
}

/// What calculate_h2ovl_targets of vLLM gives in both passes together (height, width; at most 6 and 12 tiles).
TEST(H2ovlChat, CutsAPictureTwiceWhereItIsAlone) {
  struct Case {
    ImageSize size;
    std::int64_t up_to_6, up_to_12;
  };
  auto rule = get<image_processor::H2ovl>(read(h2ovl).image_processor);
  EXPECT_TRUE(rule.msac);
  for (const Case& c : {Case{{448, 448}, 5, 5},
                        {{224, 224}, 5, 5},
                        {{1344, 448}, 8, 16},
                        {{480, 640}, 13, 19},
                        {{640, 480}, 13, 19},
                        {{720, 1280}, 9, 18},
                        {{300, 1200}, 11, 17},
                        {{896, 896}, 5, 14},
                        {{1000, 1500}, 13, 19},
                        {{97, 1811}, 7, 23}}) {
    rule.tiles.max_tiles = 6;
    EXPECT_EQ(layout(rule, c.size).tiles, c.up_to_6) << c.size.height;
    rule.tiles.max_tiles = 12;
    EXPECT_EQ(layout(rule, c.size).tiles, c.up_to_12) << c.size.height;
    EXPECT_EQ(layout(rule, c.size).llm_tokens, 256 * c.up_to_12);
    const std::array two{c.size, c.size};
    EXPECT_EQ(layouts(rule, two)[1], layout(rule.tiles, c.size)) << "once where there are several";
    EXPECT_EQ(layouts(rule, std::span(two).first(1))[0], layout(rule, c.size));
  }
}

TEST(InternVlChat, RefusesWhatCannotRun) {
  const auto with = [](const std::string& keys) {
    return refused_at(R"({"model_type": "internvl_chat", "llm_config": {"model_type": "llama"}, "ps_version": "v2",
      "vision_config": {"image_size": 448}, )" +
                      keys + "}");
  };
  EXPECT_EQ(with(R"("select_layer": -1)"), "accepted");
  EXPECT_EQ(with(R"("ps_version": "v1")"), "config.json.ps_version");
  EXPECT_EQ(with(R"("force_image_size": 224)"), "config.json.force_image_size");
  EXPECT_EQ(with(R"("select_layer": 49)"), "config.json.select_layer");
  EXPECT_EQ(with(R"("downsample_ratio": 0.3)"), "config.json.downsample_ratio");
  EXPECT_EQ(with(R"("min_dynamic_patch": 7)"), "config.json.min_dynamic_patch");
  EXPECT_EQ(with(R"("llm_config": {})"), "config.json.llm_config.model_type");
  EXPECT_EQ(with(R"("llm_config": {"model_type": "bloom"})"), "config.json.llm_config.model_type");
  EXPECT_EQ(with(R"("vision_config": {"norm_type": "group"})"), "config.json.vision_config.norm_type");
  EXPECT_EQ(refused_at(R"({"model_type": "internvl_chat", "llm_config": {"model_type": "llama"}})"),
            "config.json.ps_version");
}

// nn.Parameter counts of the class of transformers 5.17, built on the meta device.
const std::string vip = R"({"model_type": "vipllava", "text_config": {"vocab_size": 32064}, "vision_config": {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
    "image_size": 336, "patch_size": 14})";
TEST(VipLlavaConfigs, CountWhatTransformersBuilds) {
  EXPECT_EQ(parameters(vip + "}"), 7080214528);
  EXPECT_EQ(parameters(R"({"model_type": "vipllava", "text_config": {"vocab_size": 32064}})"), 7080214528);
  // Four layers fewer in the projector's norm and first matrix.
  EXPECT_EQ(parameters(vip + R"(, "vision_feature_layers": -2})"), 7080214528 - 4 * 1024 * (4096 + 2));
  EXPECT_EQ(parameters(vip + R"(, "text_config": {"model_type": "qwen3_moe"}})"),
            parameters(R"({"model_type": "qwen3_moe"})") + 303507456 + 5120 * 2 + 5121 * 2048 + 2049 * 2048);
}
TEST(VipLlavaConfigs, RefuseWhatCannotRun) {
  EXPECT_EQ(refused_at(vip + R"(, "vision_feature_layers": []})"), "config.json.vision_feature_layers");
  EXPECT_EQ(refused_at(vip + R"(, "vision_feature_layers": [-2, 25]})"), "config.json.vision_feature_layers");
  EXPECT_EQ(refused_at(R"({"model_type": "vipllava", "vision_config": {"model_type": "siglip_vision_model"}})"),
            "config.json.vision_config.model_type");
}

}  // namespace
}  // namespace vlmest::internvl_chat_configs_test
