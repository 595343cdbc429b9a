// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/step3p7/family.hpp>
#include <vlmest/family/step3p7/rule.hpp>
#include <vlmest/json/processor.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::step3p7_configs_test {
namespace {

using test::refused_at;

std::string model(const std::string& text = {}, const std::string& vision = {}) {
  return R"({"model_type": "step3p7", "vision_config": {)" + vision + R"(}, "text_config": {"sliding_window": 512)" +
         (text.empty() ? "" : ", " + text) + "}}";
}
Step3p7Family family(const std::string& json) { return get<Step3p7Family>(test::read(json).family); }

TEST(Step3p7Configs, WeightsHaveTheNamesAndShapesOfTheClass) {
  EXPECT_EQ(test::expect_recorded_parameters("step3p7.json"), 10);
}

TEST(Step3p7Configs, PartsThatAreMissingAreTheirClassesDefaults) {
  const Step3p7Family f = family(model());
  EXPECT_EQ(f.vision.layers, 47);
  EXPECT_EQ(f.vision.intermediate, 8960);
  EXPECT_EQ(f.language.vocab, 128815);
  EXPECT_EQ(f.language.moe.experts, 288);
  EXPECT_FALSE(f.language.sparse[2]);
  EXPECT_TRUE(f.language.sparse[3]);
  EXPECT_FALSE(f.language.sliding[1]);
  EXPECT_EQ(f.language.full_rotary_dim, 128);
  EXPECT_FALSE(f.tied);
}

// The released file's names come before transformers' own, its lists are longer than there are layers.
TEST(Step3p7Configs, NamesAndListsOfTheReleasedFileAreRead) {
  const Step3p7Text t = family(model(R"("num_hidden_layers": 2, "num_nextn_predict_layers": 1,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "moe_layers_enum": "1, 2",
      "partial_rotary_factors": [0.25, 0.5, 1.0], "num_attention_heads": 8, "num_attention_groups": 4,
      "num_key_value_heads": 2, "moe_num_experts": 6, "n_routed_experts": 9, "num_local_experts": 3, "moe_top_k": 2,
      "attention_other_setting": {"num_attention_heads": 12, "num_attention_groups": 2, "head_dim": 64})"))
                            .language;
  EXPECT_EQ(t.kv_heads, 4);
  EXPECT_EQ(t.moe.experts, 6);
  EXPECT_EQ(t.moe.top_k, 2);
  EXPECT_EQ(t.sliding, (std::vector<bool>{true, false}));
  EXPECT_EQ(t.sparse, (std::vector<bool>{false, true}));
  EXPECT_EQ(t.layer_heads, (std::vector<std::int64_t>{12, 8}));
  EXPECT_EQ(t.sliding_rotary_dim, 32);
  EXPECT_EQ(t.full_rotary_dim, 64);
}

TEST(Step3p7Configs, RotaryParametersByTypeComeFirst) {
  const std::string lists = R"("num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
                               "partial_rotary_factors": [0.25, 0.5], )";
  const auto dims = [&](const std::string& rope) {
    const Step3p7Text t = family(model(lists + rope)).language;
    return std::pair{t.full_rotary_dim, t.sliding_rotary_dim};
  };
  EXPECT_EQ(dims(R"("rope_parameters": {"full_attention": {}, "sliding_attention": {"partial_rotary_factor": 0.75}})"),
            std::pair(std::int64_t{128}, std::int64_t{96}));
  EXPECT_EQ(dims(R"("rope_parameters": {"full_attention": {"partial_rotary_factor": 0.75}})"),
            std::pair(std::int64_t{64}, std::int64_t{32}))
      << "no entry for every type";
  EXPECT_EQ(dims(R"("rope_scaling": {"rope_type": "llama3", "partial_rotary_factor": 0.125})"),
            std::pair(std::int64_t{16}, std::int64_t{32}))
      << "of full layers alone";
}

TEST(Step3p7Configs, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused_at(model()), "accepted");
  const std::string text = "config.json.text_config.", vision = "config.json.vision_config.";
  EXPECT_EQ(refused_at(R"({"model_type": "step3p7"})"), text + "sliding_window");
  EXPECT_EQ(refused_at(model(R"("head_dim": 127)")), text + "head_dim");
  EXPECT_EQ(refused_at(model(R"("gating": "per-element")")), text + "gating");
  EXPECT_EQ(refused_at(model(R"("gating": "per-head")")), "accepted");
  EXPECT_EQ(refused_at(model(R"("use_bidirectional_attention": true)")), text + "use_bidirectional_attention");
  EXPECT_EQ(refused_at(model(R"("num_attention_heads": 12)")), text + "num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("per_layer_config": {"0": {"num_attention_heads": 12}})")),
            text + "num_key_value_heads");
  EXPECT_EQ(refused_at(model(R"("per_layer_config": {"45": {"num_attention_heads": 8}})")),
            text + "per_layer_config.45");
  EXPECT_EQ(refused_at(model(R"("per_layer_config": {"1": {"head_dim": 64}})")), text + "per_layer_config.1.head_dim");
  EXPECT_EQ(refused_at(model(R"("layer_types": ["full_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(model(R"("num_hidden_layers": 1, "layer_types": ["chunked_attention"])")), text + "layer_types");
  EXPECT_EQ(refused_at(model(R"("num_hidden_layers": 1, "mlp_layer_types": ["moe"])")), text + "mlp_layer_types");
  EXPECT_EQ(refused_at(model(R"("moe_layers_enum": "3,x")")), text + "moe_layers_enum");
  EXPECT_EQ(refused_at(model(R"("moe_top_k": 300)")), text + "moe_top_k");
  EXPECT_EQ(refused_at(model(R"("moe_num_experts": null)")), text + "moe_num_experts");
  EXPECT_EQ(refused_at(model(R"("partial_rotary_factors": [0.01])")), text + "partial_rotary_factors");
  EXPECT_EQ(refused_at(model(R"("rope_scaling": {"rope_type": "dynamic"})")), text + "rope_scaling.rope_type");
  EXPECT_EQ(refused_at(model(R"("swiglu_limits": [0, 0, 0, 7])")), text + "swiglu_limits");
  EXPECT_EQ(refused_at(model(R"("swiglu_limits": [])")), "accepted");
  EXPECT_EQ(refused_at(model("", R"("heads": 7)")), vision + "heads");
  EXPECT_EQ(refused_at(model("", R"("num_attention_heads": 7)")), vision + "num_attention_heads");
  EXPECT_EQ(refused_at(model("", R"("width": 96, "heads": 16)")), vision + "heads");
  EXPECT_EQ(refused_at(model("", R"("head_dim": 64)")), vision + "head_dim");
  EXPECT_EQ(refused_at(model("", R"("mlp_ratio": 0)")), vision + "mlp_ratio");
  EXPECT_EQ(refused_at(model("", R"("patch_size": 729)")), vision + "patch_size");
  EXPECT_EQ(refused_at(model("", R"("rope_parameters": {"rope_type": "linear"})")),
            vision + "rope_parameters.rope_type");
  EXPECT_EQ(refused_at(model("", R"("hidden_act": "elu")")), "activation");
}

TEST(Step3p7Configs, WhatChangesNothingIsNotUnknown) {
  const Vlm m =
      test::read(model(R"("moe_router_activation": "sigmoid", "swiglu_limits_shared": [], "zero_centered": true)",
                       R"("use_ln_pre": true, "ls_init_value": 0.1)"));
  EXPECT_TRUE(m.unread_keys.empty());
  EXPECT_EQ(test::read(model(R"("another_key": 1)")).unread_keys,
            (std::vector<std::string>{"text_config.another_key"}));
}

TEST(Step3p7Configs, ProcessorsMustAgreeWithTheConfig) {
  const auto read = [](const char* keys) {
    Vlm m = test::read(model());
    json::read_processor(nlohmann::json::parse(keys), "preprocessor_config.json", json::ProcessorFile::preprocessor, m);
    return m;
  };
  EXPECT_THROW(read(R"({"vision_patch_size": 16})"), Error);
  EXPECT_THROW(read(R"({"downsampler_stride": 2})"), Error);
  EXPECT_THROW(read(R"({"size": {"shortest_edge": 336}})"), Error);
  const Vlm m = read(R"({"size": {"height": 560, "width": 560}, "patch_size": 392, "max_image_size": 900})");
  const ImageLayout l = layout(m.image_processor, ImageSize{1000, 2000});
  EXPECT_EQ(l.tile_grid, (Grid{1, 3}));  // of 450 x 900 pixels
  EXPECT_EQ(l.llm_tokens, 100 + 3 * 49);
}

// The tower leaves more of a square whose patches no four divide than the processor counts.
TEST(Step3p7Configs, TokensWithoutFeaturesAreRefused) {
  const image_processor::Step3p7 rule{.size = 742};
  EXPECT_THROW(layout(rule, ImageSize{300, 300}), Error);
}

}  // namespace
}  // namespace vlmest::step3p7_configs_test
