// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/mllama/family.hpp>
#include <vlmest/family/mllama/rule.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::mllama_family_test {
namespace {

using test::count;

constexpr std::int64_t tile_tokens = 17;  // four by four patches and a class token

Vlm tiny() {
  MllamaFamily f;
  f.vision = {.hidden = 32,
              .intermediate = 64,
              .layers = 3,
              .global_layers = 2,
              .heads = 2,
              .image_size = 56,
              .patch_size = 14,
              .intermediate_layers = {0, -1}};
  f.language.base = {
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 4, .heads = 4, .kv_heads = 2, .head_dim = 16};
  f.language.cross = {false, true, false, true};
  Vlm v{.name = "tiny", .type = "mllama", .family = f};
  v.image_processor = image_processor::Mllama{.image_size = 56, .patch_size = 14};
  v.native = {56, 56};
  return v;
}

Graph inference(const Plan& plan) { return test::inference(tiny(), plan, 5); }

TEST(MllamaFamily, CrossLayersKeepTheTilesOfAllPicturesAndDecodeLeavesThemAlone) {
  const Graph g = inference({.batch = 2, .images = 3, .text = 20});
  const std::int64_t cross = 3 * 4 * tile_tokens;
  int found = 0;
  for (const auto& t : g.tensors) found += t.role == Role::kv_cache && t.shape == Shape{2, 2, cross, 16};
  EXPECT_EQ(found, 2 * 2);  // keys and values of two layers, written once
  EXPECT_EQ(count(g, 0, "cat", "cross_attn"), 2 * 2);
  EXPECT_EQ(count(g, 1, "cat", "cross_attn"), 0);
  EXPECT_EQ(count(g, 1, "mm", "cross_attn.k_proj"), 0);
  EXPECT_EQ(count(g, 1, "mm", "cross_attn.q_proj"), 2);
}

TEST(MllamaFamily, DecodePreparesTheMaskOfAllTokensAndTakesOneRow) {
  const Graph g = inference({.batch = 2, .images = 3, .text = 20});
  const std::int64_t keys = 3 * 4 * tile_tokens, kv = 20 + 3 + 5;
  const Phase& decode = g.phases[1];
  int rows = 0;
  for (NodeId i = decode.first; i < decode.last; ++i) {
    const Node& n = g.node(i);
    if (std::string_view(n.name) == "masked_fill.Scalar") {
      EXPECT_EQ(g.tensor(g.outputs(n)[0]).shape, (Shape{2, 1, kv, keys}));
    }
    if (std::string_view(n.name) == "index.Tensor") rows += g.tensor(g.outputs(n)[0]).shape == Shape{2, 1, 1, keys};
  }
  EXPECT_EQ(rows, 1);
}

TEST(MllamaFamily, TextAloneSkipsCrossAttention) {
  const Graph g = inference({.images = 0, .text = 20});
  for (int phase : {0, 1}) {
    EXPECT_EQ(count(g, phase, "mm", "cross_attn"), 0);
    EXPECT_EQ(count(g, phase, "index.Tensor"), 0);
    EXPECT_EQ(count(g, phase, "mm", "self_attn.q_proj"), 2);
  }
}

TEST(MllamaFamily, TilesArePaddedToEightTokensAndTheFeaturesAreNot) {
  const Graph g = inference({.images = 1, .text = 20});
  bool projected = false;
  for (const auto& n : g.nodes) {
    const Shape& s = g.tensor(g.outputs(n).empty() ? 0 : g.outputs(n)[0]).shape;
    if (std::string_view(n.name) == "constant_pad_nd") {
      EXPECT_EQ(s, (Shape{1, 4, 24, 32}));
    }
    // Two intermediate states beside the last one.
    if (std::string_view(n.name) == "cat" && path(g, n.scope) == "model.vision_model" && s.rank() == 5) {
      EXPECT_EQ(s, (Shape{1, 1, 4, tile_tokens, 3 * 32}));
      projected = true;
    }
  }
  EXPECT_TRUE(projected);
}

TEST(MllamaFamily, TheEmbeddingHasEightRowsMoreThanTheHead) {
  const Graph g = inference({.images = 0, .text = 20});
  int seen = 0;
  for (const auto& t : g.tensors) {
    if (t.role != Role::weight) continue;
    const std::string where = path(g, t.scope);
    if (where == "model.language_model.embed_tokens") seen += t.shape == Shape{108, 64};
    if (where == "lm_head") seen += t.shape == Shape{100, 64};
  }
  EXPECT_EQ(seen, 2);
}

TEST(MllamaFamily, TheFusedProfileDoesTheSameProductsWithoutMasks) {
  Plan plan{.images = 2, .text = 20};
  const Graph eager = inference(plan);
  plan.runtime = runtime_id("fused");
  const Graph fused = inference(plan);
  auto products = [](const Graph& g) {
    Flops f{};
    for (const auto& n : g.nodes)
      if (path(g, n.scope) != "model.vision_model")
        f += cost(g.op(n)).flops;  // where the tile mask is an outer product
    return f;
  };
  EXPECT_EQ(products(eager), products(fused));
  EXPECT_EQ(count(fused, 0, "masked_fill.Scalar"), 0);
}

}  // namespace
}  // namespace vlmest::mllama_family_test
