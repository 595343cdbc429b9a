// SPDX-License-Identifier: Apache-2.0
// Language models alone: released checkpoints count what is published with them, absent keys mean what the classes of
// transformers 5.17 assume, and what is not a model of its own says of which one it is a part.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/analysis/params.hpp>
#include <vlmest/json/families.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "config_support.hpp"

namespace vlmest::causal_lm_configs_test {
namespace {

namespace fs = std::filesystem;
using test::parameters;
using test::read;
using test::refused_at;

const fs::path folder = fs::path(VLMEST_SOURCE_DIR) / "tests" / "data" / "language_models";

nlohmann::json document(const std::string& name) {
  std::ifstream in(folder / (name + ".json"));
  return nlohmann::json::parse(in);
}
std::vector<std::string> names() {
  std::vector<std::string> r;
  for (const auto& e : fs::directory_iterator(folder)) r.push_back(e.path().stem().string());
  std::sort(r.begin(), r.end());
  return r;
}
Parameters counted(const Vlm& vlm) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  declare_parameters(c, vlm);
  return parameters(b.graph);
}

class ReleasedLanguageModel : public testing::TestWithParam<std::string> {};

TEST_P(ReleasedLanguageModel, HasAsManyParametersAsArePublished) {
  const auto doc = document(GetParam());
  const Vlm vlm = json::read_model(doc, GetParam());
  EXPECT_EQ(vlm.name, GetParam());
  EXPECT_EQ(vlm.type, doc["model"]["model_type"]);
  EXPECT_FALSE(takes_images(vlm));
  const Parameters p = counted(vlm);
  EXPECT_EQ(p.total().value(), doc["expect"]["published"].get<std::int64_t>());
  EXPECT_EQ(p.language, p.total());
}
/// The file as it is published is the same model.
TEST_P(ReleasedLanguageModel, ReadsAsAConfigAlone) {
  const auto doc = document(GetParam());
  const Vlm vlm = json::read_model(doc["model"], "config.json");
  EXPECT_EQ(counted(vlm).total().value(), doc["expect"]["params"].get<std::int64_t>());
}
INSTANTIATE_TEST_SUITE_P(Published, ReleasedLanguageModel, testing::ValuesIn(names()), [](const auto& i) {
  std::string s = i.param;
  std::replace_if(
      s.begin(), s.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return s;
});

TEST(CausalLmConfigs, ReleasedOnesCoverTheTypes) {
  std::set<std::string> tried;
  for (const auto& name : names()) tried.insert(document(name)["model"]["model_type"]);
  for (const auto& row : json::families()) {
    if (row.folder != "causal_lm") continue;
    // Of these no counts are published.
    const std::set<std::string_view> uncounted{"aria_text", "exaone4", "lfm2", "llama4_text"};
    for (const auto& t : row.types)
      EXPECT_TRUE(tried.contains(std::string(t.type)) || uncounted.contains(t.type)) << t.type;
  }
}

/// Qwen: 3.3 of 30.5 billion and 2.7 of 14.3 billion are activated. By hand: of 48 layers 120 of 128 experts, of 24
/// layers 56 of 60, each with three matrices.
TEST(CausalLmConfigs, ATokenGoesThroughSomeExperts) {
  const Parameters qwen3 = counted(json::read_model(document("qwen3-30b-a3b"), "x"));
  EXPECT_EQ(qwen3.active().value(), 30532122624 - std::int64_t{48} * 120 * 3 * 768 * 2048);
  const Parameters qwen2 = counted(json::read_model(document("qwen1.5-moe-a2.7b"), "x"));
  EXPECT_EQ(qwen2.active().value(), 14315784192 - std::int64_t{24} * 56 * 3 * 1408 * 2048);
  const Parameters dense = counted(json::read_model(document("qwen3-8b"), "x"));
  EXPECT_EQ(dense.active(), dense.total());
}

/// The defaults of the config classes: heads, sizes and whether the output head is the embedding.
TEST(CausalLmConfigs, AbsentKeysAreTheClasses) {
  const auto alone = [](const char* type) { return parameters(R"({"model_type": ")" + std::string(type) + "\"}"); };
  EXPECT_EQ(alone("llama"), 6738415616);    // LLaMA-7B
  EXPECT_EQ(alone("gemma"), 8537680896);    // Gemma-7B
  EXPECT_EQ(alone("gemma2"), 2614341888);   // Gemma-2-2B
  EXPECT_EQ(alone("glm"), 9399951360);      // glm-4-9b-chat
  EXPECT_EQ(alone("glm4"), 9400279040);     // GLM-4-9B-0414
  EXPECT_EQ(alone("opt"), 125239296);       // opt-125m
  EXPECT_EQ(alone("cohere"), 34980831232);  // Command R
  const auto untied = [&](const char* type) {
    return parameters(R"({"tie_word_embeddings": false, "model_type": ")" + std::string(type) + "\"}") - alone(type);
  };
  EXPECT_EQ(untied("gemma2"), std::int64_t{256000} * 2304);
  EXPECT_EQ(untied("gemma3_text"), std::int64_t{262208} * 2304);
  EXPECT_EQ(untied("cohere2"), std::int64_t{256000} * 8192);
  for (const char* type : {"llama", "mistral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "glm", "glm4"})
    EXPECT_EQ(untied(type), 0) << type;
}

/// InternLM2.5-7B: 7.74 billion, by hand.
TEST(CausalLmConfigs, InternLm2ReadsAloneAsInsideInternVl) {
  const std::string keys =
      R"({"model_type": "internlm2", "vocab_size": 92544, "hidden_size": 4096, "intermediate_size": 14336,
          "num_key_value_heads": 8, "max_position_embeddings": 32768, "bias": false)";
  constexpr std::int64_t table = std::int64_t{92544} * 4096;
  const std::int64_t layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096;
  EXPECT_EQ(parameters(keys + "}"), 2 * table + 32 * layer + 4096);
  EXPECT_EQ(parameters(keys + R"(, "tie_word_embeddings": true})"), table + 32 * layer + 4096);
  EXPECT_EQ(refused_at(keys + R"(, "rope_pos_id_version": "v2pe"})"), "config.json.rope_pos_id_version");
}

/// The language model of Llama 3.2 Vision alone has the cross-attention layers too, as the 11B model has them.
TEST(CausalLmConfigs, MllamasTextModelIsTheVisionModelsPart) {
  EXPECT_EQ(parameters(R"({"model_type": "mllama_text_model"})"), 9249855504 + 525336576);
  EXPECT_EQ(refused_at(R"({"model_type": "mllama_text_model", "tie_word_embeddings": true})"),
            "config.json.tie_word_embeddings");
}

TEST(CausalLmConfigs, WhatTheHeadDoesIsRead) {
  const auto step = [](const std::string& keys) { return get<CausalLmFamily>(read("{" + keys + "}").family).logits; };
  EXPECT_EQ(step(R"("model_type": "llama")"), LogitStep::as_is);
  EXPECT_EQ(step(R"("model_type": "gemma")"), LogitStep::as_is);
  EXPECT_EQ(step(R"("model_type": "gemma2")"), LogitStep::softcap);
  EXPECT_EQ(step(R"("model_type": "gemma2", "final_logit_softcapping": null)"), LogitStep::as_is);
  EXPECT_EQ(step(R"("model_type": "gemma3_text")"), LogitStep::as_is);
  EXPECT_EQ(step(R"("model_type": "gemma3_text", "final_logit_softcapping": 30.0)"), LogitStep::softcap);
  EXPECT_EQ(step(R"("model_type": "cohere")"), LogitStep::scale);
  EXPECT_EQ(step(R"("model_type": "granite")"), LogitStep::divide);
  EXPECT_EQ(step(R"("model_type": "cohere2", "logit_scale": 0.25)"), LogitStep::scale);
  EXPECT_EQ(refused_at(R"({"model_type": "cohere", "logit_scale": null})"), "config.json.logit_scale");
  EXPECT_EQ(refused_at(R"({"model_type": "gemma2", "final_logit_softcapping": "30"})"),
            "config.json.final_logit_softcapping");
}

TEST(CausalLmConfigs, RefuseWhatCannotRun) {
  const auto with = [](const std::string& type, const std::string& keys) {
    return refused_at(R"({"model_type": ")" + type + "\", " + keys + "}");
  };
  EXPECT_EQ(with("gemma3_text", R"("use_bidirectional_attention": true)"), "config.json.use_bidirectional_attention");
  EXPECT_EQ(with("qwen2_moe", R"("use_sliding_window": true)"), "config.json.use_sliding_window");
  EXPECT_EQ(with("qwen3_moe", R"("num_experts": 4)"), "config.json.num_experts_per_tok");
  EXPECT_EQ(with("qwen3_moe", R"("mlp_only_layers": [24])"), "config.json.mlp_only_layers");
  EXPECT_EQ(with("glm4", R"("partial_rotary_factor": 0.01)"), "config.json.partial_rotary_factor");
  EXPECT_EQ(with("llama", R"("num_attention_heads": 33)"), "config.json.num_attention_heads");
  EXPECT_EQ(with("opt", R"("dropout": 2)"), "config.json.dropout");
}

Error refusal(const std::string& text) {
  try {
    json::read_model(nlohmann::json::parse(text), "x");
  } catch (const Error& e) {
    return e;
  }
  return Error("accepted", "", "");
}

TEST(CausalLmConfigs, PartsSayOfWhatTheyAreOne) {
  const Error e = refusal(R"({"model_type": "qwen2_5_vl_text"})");
  EXPECT_EQ(e.where, "x.model_type");
  EXPECT_EQ(e.what_happened, "transformers has no class that runs 'qwen2_5_vl_text' alone");
  EXPECT_EQ(e.hint, "give the config of the whole model, qwen2_5_vl, with plan.images=0");
}
TEST(CausalLmConfigs, AnUnknownTypeIsToldTheNearest) {
  EXPECT_EQ(refusal(R"({"model_type": "qwen3_mo"})").hint.rfind("did you mean 'qwen3_moe'? known: idefics3, ", 0), 0u);
  EXPECT_EQ(refusal(R"({"model_type": "internvl_chatt"})").hint.rfind("did you mean 'internvl_chat'? ", 0), 0u);
  EXPECT_EQ(refusal(R"({"model_type": "zzzzzzzzzzzzz"})").hint.rfind("known: idefics3, ", 0), 0u);
}
TEST(CausalLmConfigs, DescriptionsHaveNoPartsForPictures) {
  const std::string rest = R"("name": "x", "model": {"model_type": "llama"})";
  EXPECT_EQ(refusal("{" + rest + R"(, "image": {"max_tiles": 4}})").where, "x.image");
  EXPECT_EQ(refusal("{" + rest + R"(, "blocks": []})").where, "x.blocks");
  EXPECT_EQ(refusal("{" + rest + R"(, "kv": {"layout": "paged"}})").where, "accepted");
  EXPECT_EQ(refusal("{" + rest + R"(, "kv": {"layout": "sliding", "window": 64}})").where, "accepted");
}

}  // namespace
}  // namespace vlmest::causal_lm_configs_test
