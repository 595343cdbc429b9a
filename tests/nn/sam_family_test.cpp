// SPDX-License-Identifier: Apache-2.0
// Models on SAM's tower: biases of relative positions, windows, two towers, views of two sizes.
#include <gtest/gtest.h>

#include <vlmest/family/deepseek_ocr2/ocr_rule.hpp>
#include <vlmest/family/deepseek_ocr2/rule.hpp>
#include <vlmest/json/hf/read.hpp>

#include "training_support.hpp"

namespace vlmest::sam_family_test {
namespace {

using test::count;

/// Three layers over a map of 8 x 8 patches, the second over all of it, the others in windows of 5.
const std::string sam = R"({"hidden_size": 32, "output_channels": 32, "num_hidden_layers": 3, "num_attention_heads": 2,
  "image_size": 128, "patch_size": 16, "window_size": 5, "global_attn_indexes": [1], "mlp_dim": 48})";
const std::string llama = R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 48,
  "num_hidden_layers": 2, "num_attention_heads": 2})";
const std::string siglip = R"({"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
  "num_attention_heads": 2, "image_size": 64, "patch_size": 16, "vision_use_head": false})";

Vlm read(const std::string& text) { return json::hf::read(nlohmann::json::parse(text), "config.json"); }
Vlm got() {
  return read(R"({"model_type": "got_ocr2", "vision_config": )" + sam + R"(, "text_config": )" + llama + "}");
}
Vlm hybrid() {
  return read(R"({"model_type": "deepseek_vl_hybrid", "vision_config": )" + siglip + R"(, "high_res_vision_config": )" +
              sam + R"(, "text_config": )" + llama + "}");
}
Vlm ocr2() {
  nlohmann::json tower = nlohmann::json::parse(sam);
  tower["image_size"] = 1024;
  tower["downsample_channels"] = {24, 32};
  const nlohmann::json config = {{"model_type", "deepseek_ocr2"},
                                 {"vision_config",
                                  {{"sam_config", tower},
                                   {"encoder_config",
                                    {{"hidden_size", 32},
                                     {"intermediate_size", 48},
                                     {"num_hidden_layers", 2},
                                     {"num_attention_heads", 2},
                                     {"num_key_value_heads", 1}}}}},
                                 {"text_config",
                                  {{"vocab_size", 100},
                                   {"hidden_size", 32},
                                   {"intermediate_size", 48},
                                   {"num_hidden_layers", 2},
                                   {"num_attention_heads", 2},
                                   {"moe_intermediate_size", 16},
                                   {"n_routed_experts", 4},
                                   {"num_experts_per_tok", 2},
                                   {"mlp_layer_types", {"dense", "sparse"}}}}};
  return read(config.dump());
}

Plan plan_of(AttentionKind attention, std::int64_t chunk = 0) {
  Plan p;
  p.batch = 2;
  p.images = 1;
  p.text = 12;
  p.attention = attention;
  p.vision_chunk = chunk;
  return p;
}

/// Shapes of what ops called `name` make in modules whose path contains `within`.
std::vector<Shape> results(const Graph& g, std::string_view name, std::string_view within) {
  std::vector<Shape> r;
  for (const auto& n : g.nodes)
    if (name == n.name && path(g, n.scope).find(within) != std::string::npos)
      r.push_back(g.tensor(g.outputs(n)[0]).shape);
  return r;
}

/// Every query of every head has a bias for each key, twice: as rows and columns are added up, and as scores lie. Of
/// the global layer 64 x 64 for each of two heads of two pictures; four windows of 25 a picture elsewhere.
TEST(SamTower, BiasesAreAsLargeAsTheScores) {
  const Graph g = test::inference(got(), plan_of(AttentionKind::sdpa));
  const auto sums = results(g, "add.Tensor", "vision_tower.layers.1.attn");
  ASSERT_EQ(sums.size(), 2u) << "GOT-OCR 2.0 has no version for torch's fused attention";
  EXPECT_EQ(sums[0], (Shape{4, 8, 8, 8, 8}));
  EXPECT_EQ(sums[1], (Shape{4, 64, 64}));
  const auto copies = results(g, "clone", "vision_tower.layers.1.attn");
  EXPECT_EQ(std::count(copies.begin(), copies.end(), Shape{4, 8, 8, 8, 8}), 1);
  const auto windows = results(g, "_softmax", "vision_tower.layers.0.attn");
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0], (Shape{16, 25, 25}));
}

TEST(SamTower, TheMapIsPaddedToWholeWindows) {
  const Graph g = test::inference(got(), plan_of(AttentionKind::eager));
  const auto padded = results(g, "constant_pad_nd", "vision_tower.layers.0");
  ASSERT_EQ(padded.size(), 1u);
  EXPECT_EQ(padded[0], (Shape{2, 10, 10, 32}));
  EXPECT_TRUE(results(g, "constant_pad_nd", "vision_tower.layers.1").empty()) << "the global layer";
}

TEST(SamTower, OtherAttentionIsRefused) {
  Plan flash = plan_of(AttentionKind::flash);
  EXPECT_THROW(test::inference(got(), flash), Error);
  Plan fused = plan_of(AttentionKind::sdpa);
  fused.runtime = runtime_id("fused");
  EXPECT_THROW(test::inference(hybrid(), fused), Error);
}

TEST(SamTower, CopiedLayersGiveTheSameStep) {
  for (const Vlm& m : {got(), hybrid(), ocr2()})
    for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager})
      for (const Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
        Plan plan = plan_of(attention);
        plan.checkpointing = how;
        EXPECT_EQ(test::rows(test::training(m, plan, true)), test::rows(test::training(m, plan, false))) << m.type;
      }
}

/// The first global layer's result is read beside the last one's.
TEST(DeepseekVlHybrid, BothMapsPassTheConvolutions) {
  const Graph g = test::inference(hybrid(), plan_of(AttentionKind::sdpa));
  EXPECT_EQ(count(g, "convolution", "high_res_vision_proj"), 4);
  EXPECT_EQ(count(g, "convolution", "high_res_vision_neck"), 2);
  EXPECT_EQ(count(g, "convolution", "vision_encoder.neck"), 2);
  EXPECT_EQ(count(g, "masked_scatter", "model"), 1);
}

TEST(DeepseekVlHybrid, ChunksOfBothTowersAreJoined) {
  const Graph chunks = test::inference(hybrid(), plan_of(AttentionKind::sdpa, 1));
  EXPECT_EQ(count(chunks, "convolution", "high_res_vision_proj"), 8);
}

/// A picture of 1536 x 800 has two tiles beside its whole view: the tower runs twice, over maps of 16 x 16 and of
/// 12 x 12 features.
TEST(DeepseekOcr2, ViewsOfTwoSizesRunTheTowerTwice) {
  Plan plan = plan_of(AttentionKind::sdpa);
  plan.image_height = 1536;
  plan.image_width = 800;
  const Graph g = test::inference(ocr2(), plan);
  const auto joined = results(g, "cat", "vision_tower");
  EXPECT_EQ(std::count(joined.begin(), joined.end(), Shape{2, 512, 32}), 1);
  EXPECT_EQ(std::count(joined.begin(), joined.end(), Shape{4, 288, 32}), 1);
  EXPECT_EQ(count(g, "_upsample_bicubic2d_aa", "sam_encoder"), 1) << "positions of the tiles alone";
  plan.vision_chunk = 1;
  const auto chunks = results(test::inference(ocr2(), plan), "cat", "vision_tower");
  EXPECT_EQ(std::count(chunks.begin(), chunks.end(), Shape{1, 512, 32}), 2);
  EXPECT_EQ(std::count(chunks.begin(), chunks.end(), Shape{2, 288, 32}), 2);
}

/// infer() of the checkpoint: features, a newline behind each row of them, a separator; the README's modes.
TEST(DeepseekOcr, TokensOfEveryMode) {
  using image_processor::DeepseekOcr;
  const auto whole = [](std::int64_t side) {
    return layout(DeepseekOcr{.tile = side, .tiling = image_processor::Tiling::never}, {2000, 900}).llm_tokens;
  };
  EXPECT_EQ(whole(512), 64 + 8 + 1) << "Tiny";
  EXPECT_EQ(whole(640), 100 + 10 + 1) << "Small";
  EXPECT_EQ(whole(1024), 256 + 16 + 1) << "Base";
  EXPECT_EQ(whole(1280), 400 + 20 + 1) << "Large";
  EXPECT_EQ(layout(DeepseekOcr{}, {640, 640}).llm_tokens, 256 + 16 + 1) << "Gundam does not cut a small picture";
  EXPECT_EQ(layout(DeepseekOcr{}, {1280, 640}).llm_tokens, 273 + 2 * 100 + 20) << "two tiles, one above the other";
  EXPECT_EQ(layout(DeepseekOcr{}, {640, 1280}).llm_tokens, 273 + 2 * 100 + 10) << "two side by side";
  EXPECT_EQ(layout(DeepseekOcr{}, {1920, 1280}).llm_tokens, 273 + 6 * 100 + 30) << "three rows of two";
  EXPECT_THROW(layout(DeepseekOcr{.tile = 512}, {1280, 640}), Error) << "tiles are of 640 pixels whatever is asked for";
}

TEST(DeepseekOcr2, TokensAreTheTowersQueries) {
  using image_processor::DeepseekOcr2;
  EXPECT_EQ(layout(DeepseekOcr2{}, {600, 700}).llm_tokens, 257);
  EXPECT_EQ(layout(DeepseekOcr2{}, {1536, 800}).llm_tokens, 257 + 2 * 144);
  EXPECT_EQ(layout(DeepseekOcr2{.size = 768}, {600, 700}).llm_tokens, 145);
  EXPECT_THROW(layout(DeepseekOcr2{.size = 640}, {600, 700}), Error) << "144 queries, 100 placeholders";
  EXPECT_THROW(layout(DeepseekOcr2{.tiling = image_processor::Tiling::never}, {600, 700}), Error)
      << "the processor writes the placeholders of 1024 pixels";
}

}  // namespace
}  // namespace vlmest::sam_family_test
