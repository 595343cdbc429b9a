// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/qwen3_vl/family.hpp>

#include "recorded_parameters.hpp"

namespace vlmest::qwen3_vl_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

std::string dense(const std::string& text, const std::string& vision, bool tied) {
  return R"({"model_type": "qwen3_vl", "tie_word_embeddings": )" + std::string(tied ? "true" : "false") +
         R"(, "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}
std::string sparse(const std::string& text, const std::string& vision) {
  return R"({"model_type": "qwen3_vl_moe", "text_config": {)" + text + R"(}, "vision_config": {)" + vision + "}}";
}

// Counts of the released models, as the classes of transformers 5.17 have them.
TEST(Qwen3VlConfigs, ReleasedModelsCountAsTransformersBuildsThem) {
  const std::string small =
      R"("depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "deepstack_visual_indexes": [5, 11, 17], "out_hidden_size": )";
  const std::string large = R"("out_hidden_size": )";
  EXPECT_EQ(parameters(read(dense(R"("hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 8)",
                                  small + "2048", true))),
            2127532032);
  EXPECT_EQ(parameters(read(dense(R"("hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
      "num_attention_heads": 32, "num_key_value_heads": 8)",
                                  small + "2560", true))),
            4437815808);
  EXPECT_EQ(parameters(read(dense(R"("hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
      "num_attention_heads": 32, "num_key_value_heads": 8)",
                                  large + "4096", false))),
            8767123696);
  EXPECT_EQ(parameters(read(dense(R"("hidden_size": 5120, "intermediate_size": 25600, "num_hidden_layers": 64,
      "num_attention_heads": 64, "num_key_value_heads": 8)",
                                  large + "5120", false))),
            33357390064);
  EXPECT_EQ(parameters(read(sparse(R"("hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
      "moe_intermediate_size": 768)",
                                   large + "2048"))),
            31070754032);
  EXPECT_EQ(parameters(read(sparse(R"("hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
      "moe_intermediate_size": 1536)",
                                   large + "4096"))),
            235670022896);
}

TEST(Qwen3VlConfigs, SparseLayersFollowStepAndExceptions) {
  const Vlm v = read(sparse(R"("num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [3])",
                            R"("out_hidden_size": 2048)"));
  EXPECT_EQ(get<Qwen3VlFamily>(v.family).language.sparse, (std::vector<bool>{false, true, false, false, false, true}));
  const Vlm none = read(sparse(R"("num_hidden_layers": 6, "num_experts": 0)", R"("out_hidden_size": 2048)"));
  EXPECT_TRUE(get<Qwen3VlFamily>(none.family).language.sparse.empty());
}

TEST(Qwen3VlConfigs, HeadDimDefaultsTo128WhereDenseAndToTheQuotientWhereSparse) {
  const std::string vision = R"("out_hidden_size": 512)";
  const auto dim = [](const Vlm& v) { return get<Qwen3VlFamily>(v.family).language.layers.head_dim; };
  EXPECT_EQ(
      dim(read(dense(R"("hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8)", vision, false))),
      128);
  EXPECT_EQ(dim(read(sparse(R"("hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8)", vision))), 64);
}

TEST(Qwen3VlConfigs, WrongValuesAreRefusedWhereTheyStand) {
  const std::string out = R"("out_hidden_size": 2048)";
  EXPECT_EQ(refused_at(sparse("", out)), "accepted");
  EXPECT_EQ(refused_at(sparse("", R"("out_hidden_size": 1024)")), "config.json.vision_config.out_hidden_size");
  EXPECT_EQ(refused_at(sparse("", out + R"(, "deepstack_visual_indexes": [27])")),
            "config.json.vision_config.deepstack_visual_indexes");
  EXPECT_EQ(refused_at(sparse("", out + R"(, "deepstack_visual_indexes": [-1])")),
            "config.json.vision_config.deepstack_visual_indexes");
  EXPECT_EQ(refused_at(sparse("", out + R"(, "num_heads": 7)")), "config.json.vision_config.num_heads");
  EXPECT_EQ(refused_at(sparse("", out + R"(, "num_heads": 64)")), "config.json.vision_config.num_heads");
  EXPECT_EQ(refused_at(sparse(R"("num_experts": 4, "num_experts_per_tok": 5)", out)),
            "config.json.text_config.num_experts_per_tok");
  EXPECT_EQ(refused_at(sparse(R"("num_experts": 1024)", out)), "config.json.text_config.num_experts");
  EXPECT_EQ(refused_at(sparse(R"("mlp_only_layers": [24])", out)), "config.json.text_config.mlp_only_layers");
  EXPECT_EQ(refused_at(sparse(R"("num_key_value_heads": 3)", out)), "config.json.text_config.num_key_value_heads");
  EXPECT_EQ(refused_at(sparse(R"("rope_scaling": {"mrope_section": [24, 20]})", out)),
            "config.json.text_config.mrope_section");
  EXPECT_EQ(refused_at(sparse(R"("decoder_sparse_step": 0)", out)), "config.json.text_config.decoder_sparse_step");
}

// Cosmos 3 Omni's reasoning half, as transformers 5.17 reads it: Qwen3-VL of 8 billion parameters.
TEST(Cosmos3OmniConfigs, WeightsHaveTheNamesAndShapesOfTheClasses) {
  EXPECT_EQ(test::expect_recorded_parameters("cosmos3_omni.json"), 4);
}

}  // namespace
}  // namespace vlmest::qwen3_vl_configs_test
