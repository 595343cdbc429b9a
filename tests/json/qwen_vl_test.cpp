// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "config_support.hpp"

namespace qwen_vl_test {
namespace {

using nlohmann::json;
using vlmest::Error;

/// Qwen/Qwen2-VL-2B-Instruct, config.json: text keys at the top level.
json qwen2_vl_2b() {
  return json::parse(
      R"({"model_type": "qwen2_vl", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
    "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3,
                      "hidden_size": 1536, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}})");
}

/// Qwen/Qwen2.5-VL-32B-Instruct, config.json.
json qwen2_5_vl_32b() {
  return json::parse(
      R"({"model_type": "qwen2_5_vl", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64,
    "num_attention_heads": 40, "num_key_value_heads": 8, "vocab_size": 152064, "tie_word_embeddings": false,
    "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3456, "num_heads": 16, "out_hidden_size": 5120,
                      "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
                      "fullatt_block_indexes": [7, 15, 23, 31]}})");
}

vlmest::Vlm read(const json& d) { return vlmest::test::read(d.dump()); }
std::int64_t parameters(const json& d) { return vlmest::test::parameters(d.dump()); }
std::string refused_at(const json& d) { return vlmest::test::refused_at(d.dump()); }

// Published parameter counts (safetensors indices of both repositories).
TEST(QwenVl, ParametersOfPublishedModels) {
  EXPECT_EQ(parameters(qwen2_vl_2b()), 2208985600);
  EXPECT_EQ(parameters(qwen2_5_vl_32b()), 33452718336);
}

TEST(QwenVl, TextKeysMayBeNestedAndTiedThere) {
  json d = qwen2_vl_2b();
  json text;
  for (const char* k : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                        "num_key_value_heads", "vocab_size"}) {
    text[k] = d[k];
    d.erase(k);
  }
  text["tie_word_embeddings"] = true;
  d.erase("tie_word_embeddings");
  d["text_config"] = text;
  EXPECT_EQ(parameters(d), 2208985600);
  d["text_config"]["tie_word_embeddings"] = false;
  EXPECT_EQ(parameters(d), 2208985600 + 151936 * 1536);
}

TEST(QwenVl, NamesTheBadKey) {
  auto with = [](json d, const json::json_pointer& at, const json& value) {
    d[at] = value;
    return refused_at(d);
  };
  const json q2 = qwen2_vl_2b(), q25 = qwen2_5_vl_32b();
  EXPECT_EQ(with(q2, json::json_pointer("/num_attention_heads"), 7), "config.json.num_key_value_heads");
  EXPECT_EQ(with(q2, json::json_pointer("/vision_config/num_heads"), 7), "config.json.vision_config.num_heads");
  EXPECT_EQ(with(q2, json::json_pointer("/rope_scaling/mrope_section"), json::array({0, 64})),
            "config.json.rope_scaling.mrope_section");
  EXPECT_EQ(with(q25, json::json_pointer("/vision_config/window_size"), 20), "config.json.vision_config.window_size");
  EXPECT_EQ(with(q25, json::json_pointer("/vision_config/fullatt_block_indexes"), json::array({-1})),
            "config.json.vision_config.fullatt_block_indexes");
  EXPECT_EQ(refused_at(q2), "accepted");
}

TEST(QwenVl, SectionsKeepTheirProportions) {
  using vlmest::json::hf::fit_sections;
  EXPECT_EQ(fit_sections({16, 24, 24}, 64), (std::vector<std::int64_t>{16, 24, 24}));
  EXPECT_EQ(fit_sections({16, 24, 24}, 32), (std::vector<std::int64_t>{8, 12, 12}));
  const auto odd = fit_sections({16, 24, 24}, 20);
  EXPECT_EQ(std::accumulate(odd.begin(), odd.end(), std::int64_t{0}), 20);
}

/// Attention calls of the first phase by query length.
std::map<std::int64_t, int> attention_calls(const json& d, const std::vector<vlmest::ImageSize>& images,
                                            std::int64_t batch) {
  const vlmest::Vlm m = read(d);
  vlmest::Plan plan;
  plan.batch = batch;
  vlmest::Sequences s{.batch = batch, .text = 10, .image = images.front()};
  const auto one = layouts(m.image_processor, images);
  for (const auto& i : one) s.image_tokens += i.llm_tokens;
  s.seq = s.text + s.image_tokens;
  for (std::int64_t i = 0; i < batch; ++i) s.images.insert(s.images.end(), one.begin(), one.end());
  vlmest::Builder b;
  vlmest::Context c{b, plan, stack_of(plan)};
  build_inference(c, m, s, 0);
  std::map<std::int64_t, int> calls;
  for (const auto& n : b.graph.nodes)
    if (const auto* a = std::get_if<vlmest::Attention>(&b.graph.op(n))) ++calls[a->q_len];
  return calls;
}

// 30 x 26 patches are 15 x 13 merged cells in windows of 4 x 4: 3 x 3 full ones, 3 with one column of cells, 3 with
// three rows, 1 corner of 3 x 1. The second picture, 8 x 12 patches, has 1 x 1.5: one full, one of two columns of
// cells.
TEST(QwenVl, OneCallPerWindowOfEveryPicture) {
  json d = qwen2_5_vl_32b();
  d["num_hidden_layers"] = 1;
  d["vision_config"]["depth"] = 2;
  d["vision_config"]["fullatt_block_indexes"] = {1};
  const auto calls = attention_calls(d, {{420, 364}, {112, 168}}, 2);
  const std::int64_t seq = 10 + 15 * 13 + 4 * 6;
  const std::map<std::int64_t, int> expected{
      {4 * 3, 2},   {4 * 4, 2 * 3}, {4 * 8, 2}, {4 * 12, 2 * 3}, {4 * 16, 2 * (9 + 1)},
      {30 * 26, 2}, {8 * 12, 2},    {seq, 1}};
  EXPECT_EQ(calls, expected);
}

TEST(QwenVl, TextAloneNeedsNoTower) {
  json d = qwen2_vl_2b();
  d["num_hidden_layers"] = 2;
  vlmest::Plan plan;
  plan.images = 0;
  vlmest::Builder b;
  vlmest::Context c{b, plan, stack_of(plan)};
  const vlmest::Vlm m = read(d);
  build_inference(c, m, make_sequences(m, plan), plan.text + 1);
  for (const auto& op : b.graph.ops) EXPECT_FALSE(std::holds_alternative<vlmest::Convolution>(op));
  EXPECT_EQ(b.graph.phases.size(), 2u);
}

TEST(Mrope, TextStandsAroundPictures) {
  std::vector<vlmest::ImageLayout> images(4);
  for (std::size_t i = 0; i < 4; ++i) images[i].llm_tokens = 10 * static_cast<std::int64_t>(i + 1);
  vlmest::Sequences s{.batch = 2, .seq = 80, .images = images};
  const auto first = vlmest::modality_runs(s, 0), second = vlmest::modality_runs(s, 1);
  ASSERT_EQ(first.size(), 5u);
  EXPECT_EQ(first[0].tokens, 1);
  EXPECT_EQ(first[1].image->llm_tokens, 10);
  EXPECT_EQ(first[4].tokens, 80 - 30 - 2);
  EXPECT_EQ(second[4].tokens, 80 - 70 - 2);
  s.seq = 69;
  EXPECT_THROW(vlmest::modality_runs(s, 1), Error);
}

}  // namespace
}  // namespace qwen_vl_test
