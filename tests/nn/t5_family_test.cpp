// SPDX-License-Identifier: Apache-2.0
// BLIP-2 with T5: what the two stacks run, what each keeps, what a decode step and a training step are.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/family/blip2/t5.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "family_support.hpp"

namespace vlmest::t5_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t encoder_layers = 3, decoder_layers = 2, heads = 4, head_dim = 8;

Vlm tiny(bool gated = true) {
  Blip2T5Family f;
  f.vision = {.hidden = 32, .intermediate = 64, .layers = 1, .heads = 2, .image_size = 28, .patch_size = 14};
  f.qformer = {.hidden = 32, .intermediate = 64, .layers = 1, .heads = 2, .encoder_hidden = 32};
  f.language = {.vocab = 100,
                .hidden = 64,
                .head_dim = head_dim,
                .intermediate = 96,
                .encoder_layers = encoder_layers,
                .decoder_layers = decoder_layers,
                .heads = heads,
                .gated = gated};
  f.query_tokens = 4;
  Vlm m{.name = "tiny", .type = "blip-2"};
  m.family = f;
  m.image_processor = image_processor::Blip2{.image_size = 28, .patch_size = 14, .query_tokens = 4};
  m.native = {28, 28};
  return m;
}
Plan plan(std::int64_t text = 12, std::int64_t batch = 2) { return {.batch = batch, .text = text}; }

InferenceCaches caches(const Vlm& v, const Plan& p, std::int64_t steps) {
  Builder b;
  Context c{b, p, stack_of(p)};
  const Sequences s = make_sequences(v, p);
  return build_inference(c, v, s, s.seq + steps);
}
Bytes sum(const std::vector<CacheEntry>& entries, bool fixed) {
  Bytes r{};
  for (const auto& e : entries)
    if (e.fixed == fixed) r += e.bytes;
  return r;
}
/// Keys and values of so many tokens in one layer's bf16 cache.
Bytes entry(std::int64_t tokens) { return Bytes(2 * 2 * tokens * heads * head_dim * 2); }

TEST(T5Family, TheDecodersCacheGrowsAndTheEncodersDoesNot) {
  for (const std::int64_t steps : {1, 2, 9}) {
    const InferenceCaches c = caches(tiny(), plan(), steps);
    EXPECT_EQ(sum(c.prefill, false), entry(1) * decoder_layers);
    EXPECT_EQ(sum(c.decode, false), entry(1 + steps) * decoder_layers);
    EXPECT_EQ(sum(c.prefill, true), entry(12 + 4) * decoder_layers);
    EXPECT_EQ(sum(c.decode, true), sum(c.prefill, true));
    EXPECT_EQ(c.decode_kv, 1 + steps);
  }
}

TEST(T5Family, ADecodeStepRunsTheDecoderAlone) {
  const Graph g = inference(tiny(), plan(), 3);
  EXPECT_GT(count(g, 0, "mm", "language_model.encoder"), 0);
  EXPECT_EQ(count(g, 1, "mm", "language_model.encoder"), 0);
  EXPECT_EQ(count(g, 1, "addmm"), 0) << "no tower, no Q-Former";
  // Queries, keys, values and the output of one attention, queries and the output of the other, three of the MLP.
  EXPECT_EQ(count(g, 1, "mm", "language_model.decoder"), (4 + 2 + 3) * decoder_layers);
  EXPECT_EQ(count(g, 0, "mm", "EncDecAttention"), 4 * decoder_layers);
}

TEST(T5Family, TheEncodersStatesOutliveThePrefill) {
  const Graph g = inference(tiny(), plan());
  const Shape states{2, 12 + 4, 64};
  int alive = 0;
  for (const Tensor& t : g.tensors)
    alive += t.alias_of == none && t.role == Role::activation && t.shape == states && t.born < g.phases[0].last &&
             (t.dies == none || t.dies >= g.phases[1].last);
  EXPECT_EQ(alive, 1);
}

TEST(T5Family, TheFirstBlockMakesTheBiasesOfAll) {
  for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
    Plan p = plan();
    p.attention = attention;
    const Graph g = inference(tiny(), p);
    EXPECT_EQ(count(g, 0, "embedding", "relative_attention_bias"), 2);
    EXPECT_EQ(count(g, 1, "embedding", "relative_attention_bias"), 1);
    EXPECT_EQ(count(g, 0, "zeros", "EncDecAttention"), 1);
  }
}

// A bias is a view whose rows have gaps: no fused kernel takes it as a mask. One of zeros it does.
TEST(T5Family, SelfAttentionIsWrittenOutAndCrossAttentionIsFused) {
  const Graph g = inference(tiny(), plan());
  EXPECT_EQ(count(g, 0, "_safe_softmax", "SelfAttention"), encoder_layers + decoder_layers);
  EXPECT_EQ(count(g, 0, "_scaled_dot_product_cudnn_attention", "EncDecAttention"), decoder_layers);
  EXPECT_EQ(count(g, 0, "_safe_softmax", "EncDecAttention"), 0);
}

TEST(T5Family, AnFp16ModelKeepsItsLastProductsInFp32AndItsStatesFinite) {
  for (const DType t : {DType::bf16, DType::fp16, DType::fp32}) {
    Plan p = plan();
    p.dtype = t;
    const Graph g = inference(tiny(false), p);
    std::set<std::string> wide;
    for (const Tensor& w : g.tensors)
      if (w.role == Role::weight && w.alias_of == none && w.dtype == DType::fp32)
        if (const std::string scope = path(g, w.scope); scope.starts_with("language_model"))
          wide.insert(scope.substr(scope.rfind('.') + 1));
    if (t == DType::fp16) {
      EXPECT_EQ(wide, std::set<std::string>{"wo"});
    }
    // Behind the first feed forward the states are fp32 and are left alone.
    EXPECT_EQ(count(g, 0, "isinf"), t == DType::fp16 ? 3 : 0);
  }
}

TEST(T5Family, TrainingIsOverItsLabels) {
  const auto built = [](const Plan& p) {
    Builder b;
    Context c{b, p, stack_of(p)};
    const Vlm v = tiny();
    build_training(c, v, make_sequences(v, p));
    return std::move(b.graph);
  };
  const auto logits = [](const Graph& g) {
    for (const Node& n : g.nodes)
      if (std::string_view(n.name) == "_log_softmax") return g.tensor(g.outputs(n)[0]).shape;
    return Shape{};
  };
  Plan p = plan();
  EXPECT_EQ(logits(built(p)), (Shape{2 * 128, 100})) << "as many as --new-tokens";
  p.target = 7;
  EXPECT_EQ(logits(built(p)), (Shape{2 * 7, 100}));
  const Graph g = built(p);
  EXPECT_EQ(count(g, "new_zeros", "language_model"), 1) << "labels are shifted";
  int labels = 0;
  for (const Tensor& t : g.tensors) {
    labels += std::string_view(t.name) == "labels" && t.shape == Shape{2, 7};
    EXPECT_NE(std::string_view(t.name), "decoder_input_ids");
  }
  EXPECT_EQ(labels, 1);
}

TEST(T5Family, ModelsWithoutSuchADecoderTakeNoTarget) {
  Vlm v = tiny();
  Plan p = plan();
  p.target = 3;
  EXPECT_EQ(make_sequences(v, p).target, 3);
  Blip2Family opt;
  opt.vision = {.hidden = 32, .intermediate = 64, .layers = 1, .heads = 2, .image_size = 28, .patch_size = 14};
  v.family = opt;
  EXPECT_THROW(make_sequences(v, p), Error);
  p.target.reset();
  EXPECT_EQ(make_sequences(v, p).target, 0);
}

TEST(T5Family, WhatIsNotModelledIsRefused) {
  const auto infer = [](auto change) {
    Plan p = plan();
    change(p);
    inference(tiny(), p);
  };
  const auto train = [](auto change) {
    Plan p = plan();
    change(p);
    Builder b;
    Context c{b, p, stack_of(p)};
    const Vlm v = tiny();
    build_training(c, v, make_sequences(v, p));
  };
  infer([](Plan&) {});
  train([](Plan&) {});
  EXPECT_THROW(infer([](Plan& p) { p.attention = AttentionKind::flash; }), Error);
  EXPECT_THROW(infer([](Plan& p) { p.runtime = runtime_id("fused"); }), Error);
  EXPECT_THROW(infer([](Plan& p) { p.weights = DType::int8; }), Error);
  EXPECT_THROW(infer([](Plan& p) { p.kv.dtype = DType::fp8; }), Error);
  EXPECT_THROW(infer([](Plan& p) { p.kv.kind = KvLayout::Kind::paged; }), Error);
  EXPECT_THROW(train([](Plan& p) { p.checkpointing = Checkpointing::full; }), Error);
  EXPECT_THROW(train([](Plan& p) { p.loss = Loss::chunked; }), Error);
  EXPECT_THROW(train([](Plan& p) { p.input_gradients = true; }), Error);
  train([](Plan& p) {
    p.checkpointing = Checkpointing::full;
    p.checkpointed.language = false;
    p.input_gradients = false;
  });
}

TEST(T5Family, DefaultAdaptersGoToItsOwnNames) {
  Plan p = plan();
  p.lora.rank = 4;
  Builder b;
  Context c{b, p, stack_of(p)};
  const Vlm v = tiny();
  build_training(c, v, make_sequences(v, p));
  std::set<std::string> on;
  for (const Tensor& t : b.graph.tensors)
    if (t.role == Role::weight && is_adapter(b.graph, t)) {
      const std::string scope = path(b.graph, t.scope);
      on.insert(scope.substr(0, scope.find(".lora_")));
    }
  EXPECT_EQ(static_cast<std::int64_t>(on.size()), 4 * encoder_layers + 8 * decoder_layers);
}

}  // namespace
}  // namespace vlmest::t5_family_test
