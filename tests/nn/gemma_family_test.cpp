// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/gemma3/family.hpp>
#include <vlmest/family/gemma3/rule.hpp>
#include <vlmest/family/paligemma/family.hpp>
#include <vlmest/family/paligemma/rule.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::gemma_family_test {
namespace {

using test::count;

constexpr SiglipVision vision{
    .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .image_size = 56, .patch_size = 14, .head = false};
constexpr std::int64_t window = 32;

GemmaConfig text() {
  return {.vocab = 100, .hidden = 64, .intermediate = 96, .layers = 3, .heads = 4, .kv_heads = 2, .head_dim = 16};
}
GemmaConfig sliding_text() {
  GemmaConfig g = text();
  g.sandwich = true;
  g.window = window;
  g.sliding = {true, true, false};
  return g;
}

Vlm paligemma(const GemmaConfig& language) {
  PaliGemmaFamily f{.vision = vision, .language = language};
  f.language.causal = false;
  return {.name = "tiny",
          .type = "paligemma",
          .family = f,
          .image_processor = image_processor::PaliGemma{.image_size = 56, .patch_size = 14},
          .native = {56, 56}};
}
Vlm gemma3() {
  Gemma3Family f{
      .vision = vision, .projector = {.in = 64, .out = 64, .side = 4, .window = 2}, .language = sliding_text()};
  f.language.qk_norm = f.language.rope_by_type = true;
  return {.name = "tiny",
          .type = "gemma3",
          .family = f,
          .image_processor = image_processor::Gemma3{.image_size = 56, .patch_size = 14, .image_tokens = 4},
          .native = {56, 56}};
}

struct Built {
  Graph graph;
  InferenceCaches caches;
};
Built inference(const Vlm& v, const Plan& plan, std::int64_t steps = 2) {
  Builder b;
  Context c{b, plan, stack_of(plan)};
  const Sequences s = make_sequences(v, plan);
  InferenceCaches caches = build_inference(c, v, s, s.seq + steps);
  return {std::move(b.graph), std::move(caches)};
}

int shaped(const Graph& g, int phase, std::string_view name, const Shape& s) {
  int n = 0;
  const Phase& p = g.phases[static_cast<std::size_t>(phase)];
  for (NodeId i = p.first; i < p.last; ++i) {
    const Node& node = g.node(i);
    for (auto o : g.outputs(node)) n += name == node.name && g.tensor(o).shape == s;
  }
  return n;
}
Flops flops(const Graph& g) {
  Flops f{};
  for (const auto& n : g.nodes) f += cost(g.op(n)).flops;
  return f;
}

TEST(GemmaFamily, PrefillAlwaysWritesItsMasksOut) {
  const Plan plan{.batch = 2, .images = 0, .text = 20};
  EXPECT_EQ(shaped(inference(paligemma(text()), plan).graph, 0, "bitwise_or.Tensor", {2, 1, 20, 20}), 1);
  EXPECT_EQ(shaped(inference(paligemma(sliding_text()), plan).graph, 0, "bitwise_or.Tensor", {2, 1, 20, 20}), 2);
  const Graph g = inference(gemma3(), plan).graph;
  EXPECT_EQ(shaped(g, 0, "bitwise_or.Tensor", {2, 1, 20, 20}), 1);
  EXPECT_EQ(shaped(g, 0, "bitwise_or.Tensor", {2, 20, 20}), 1);  // the sliding one, under vmap
}

TEST(GemmaFamily, PaliGemmaDecodesWithoutAMaskWhileTheWindowIsOpen) {
  const Graph g = inference(paligemma(sliding_text()), {.images = 0, .text = 20}).graph;
  EXPECT_EQ(count(g, 1, "le.Tensor"), 0);
  EXPECT_EQ(count(g, 1, "sum"), 2);
}

TEST(GemmaFamily, AFullWindowIsMaskedAndSizedByTheCache) {
  for (std::int64_t tokens : {window - 1, window, window + 1, 3 * window}) {
    const Graph g = inference(paligemma(sliding_text()), {.images = 0, .text = tokens}, 1).graph;
    const std::int64_t keys = std::min(tokens + 1, window);
    EXPECT_EQ(shaped(g, 1, "gt.Tensor", {1, 1, 1, keys}), 1) << tokens;
    EXPECT_EQ(count(g, 1, "sum"), 1) << tokens;  // the full layers are told is_causal
    // The padding mask is cut to the keys where it is longer.
    EXPECT_EQ(shaped(g, 1, "index.Tensor", {1, keys}), tokens >= window ? 1 : 0) << tokens;
    EXPECT_EQ(shaped(g, 1, "cat", {1, 2, keys, 16}), 2 * 2 + (keys == tokens + 1 ? 2 : 0)) << tokens;
  }
}

TEST(GemmaFamily, ASlidingLayerKeepsItsWindowLessOne) {
  const Built b = inference(gemma3(), {.batch = 2, .images = 1, .text = 3 * window, .markers = false}, 3);
  const std::int64_t row = 2 * 2 * 2 * 16 * 2, seq = 3 * window + 4;  // batch, keys and values, heads, channels, bf16
  ASSERT_EQ(b.caches.prefill.size(), 3u);
  EXPECT_EQ(b.caches.prefill[0].bytes, Bytes((window - 1) * row));
  EXPECT_EQ(b.caches.prefill[2].bytes, Bytes(seq * row));
  EXPECT_EQ(b.caches.decode[0].bytes, Bytes((window - 1) * row));
  EXPECT_EQ(b.caches.decode[2].bytes, Bytes((seq + 3) * row));
  // What it keeps is a view: the storage is the whole prompt's after the prefill, the window's after a step.
  for (const auto& t : b.graph.tensors)
    if (t.role == Role::kv_cache && t.alias_of == none) {
      EXPECT_TRUE(t.shape[2] == seq || t.shape[2] == window || t.shape[2] > seq) << to_string(t.shape);
    }
}

TEST(GemmaFamily, GemmaThreeDecodesWithTheTokensType) {
  const Graph g = inference(gemma3(), {.batch = 2, .images = 1, .text = 10, .markers = false}).graph;
  const std::int64_t kv = 10 + 4 + 2;
  EXPECT_EQ(shaped(g, 1, "constant_pad_nd", {2, kv}), 2);
  EXPECT_EQ(shaped(g, 1, "where.self", {2, 1, 1, kv}), 3);  // a float mask in each layer
}

TEST(GemmaFamily, RotaryBuffersFollowTheTypesOfLayers) {
  auto names = [](Gemma3Family f) {
    Builder b;
    const Plan plan;
    Context c{b, plan, stack_of(plan)};
    make_model(c, f);
    std::vector<std::string> r;
    for (const auto& t : b.graph.tensors)
      if (t.role == Role::buffer && path(b.graph, t.scope).ends_with("rotary_emb")) r.emplace_back(t.name);
    return r;
  };
  Gemma3Family f = get<Gemma3Family>(gemma3().family);
  EXPECT_EQ(names(f), (std::vector<std::string>{"full_attention_inv_freq", "full_attention_original_inv_freq",
                                                "sliding_attention_inv_freq", "sliding_attention_original_inv_freq"}));
  f.language.sliding = {true, true, true};
  EXPECT_EQ(names(f).size(), 2u);
}

TEST(GemmaFamily, CappedScoresTakeThreeMoreStepsInEagerAttention) {
  GemmaConfig capped = sliding_text();
  capped.softcap = true;
  const Plan plan{.images = 0, .text = 20, .attention = AttentionKind::eager};
  EXPECT_EQ(count(inference(paligemma(capped), plan).graph, 0, "tanh"), 3);
  EXPECT_EQ(count(inference(paligemma(sliding_text()), plan).graph, 0, "tanh"), 0);
  EXPECT_EQ(count(inference(paligemma(capped), {.images = 0, .text = 20}).graph, 0, "tanh"), 0);
}

TEST(GemmaFamily, APlaceholderOutsideTheVocabularyIsReplacedInACopy) {
  Vlm v = paligemma(text());
  EXPECT_EQ(count(inference(v, {.text = 20}).graph, 0, "index_put_"), 0);
  get<PaliGemmaFamily>(v.family).placeholder_outside = true;
  EXPECT_EQ(count(inference(v, {.text = 20}).graph, 0, "index_put_"), 1);
}

TEST(GemmaFamily, TheFusedProfileDoesTheSameProductsWithoutMasks) {
  for (const Vlm& v : {paligemma(text()), paligemma(sliding_text()), gemma3()}) {
    Plan plan{.batch = 2, .images = 2, .text = 40};
    const Graph eager = inference(v, plan).graph;
    plan.runtime = runtime_id("fused");
    const Graph fused = inference(v, plan).graph;
    EXPECT_EQ(flops(eager), flops(fused));
    EXPECT_EQ(count(fused, 0, "le.Tensor") + count(fused, 1, "le.Tensor"), 0);
    EXPECT_LT(fused.nodes.size(), eager.nodes.size());
  }
}

}  // namespace
}  // namespace vlmest::gemma_family_test
