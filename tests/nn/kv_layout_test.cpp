// SPDX-License-Identifier: Apache-2.0
// Layouts of the cache: bytes as products worked out by hand, and the same bytes in the graph of a decode step.
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/llava/family.hpp>
#include <vlmest/nn/image_processor/llava.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

namespace vlmest::kv_layout_test {
namespace {

constexpr KvRows rows{.batch = 2, .kv_heads = 3, .head_dim = 64, .tokens = 100};
constexpr std::int64_t values = 2 * 3 * 100 * 64;  // of the keys

static_assert(kv_bytes({}, rows, DType::bf16) == Bytes(2 * 2 * values));
static_assert(kv_bytes({.kind = KvLayout::Kind::paged, .block = 16}, rows, DType::bf16) ==
              Bytes(2 * 2 * 2 * 3 * 112 * 64));
static_assert(kv_bytes({.kind = KvLayout::Kind::sliding, .window = 33}, rows, DType::bf16) ==
              Bytes(2 * 2 * 2 * 3 * 32 * 64));
static_assert(kv_bytes({.kind = KvLayout::Kind::mla, .latent_dim = 512, .rope_dim = 64}, rows, DType::bf16) ==
              Bytes(2 * 2 * 100 * 576));
static_assert(kv_bytes({.dtype = DType::fp8}, rows, DType::bf16) == Bytes(2 * (values + 4)));
// A scale and a zero point of two bytes for 64 values: a head's row has one group.
static_assert(kv_bytes({.dtype = DType::int8}, rows, DType::bf16) == Bytes(2 * (values + 600 * 4)));
static_assert(kv_bytes({.dtype = DType::int4}, rows, DType::bf16) == Bytes(2 * (values / 2 + 600 * 4)));
static_assert(kv_bytes({.dtype = DType::int4}, rows, DType::bf16, 10) ==
              Bytes(2 * (values * 9 / 20 + 540 * 4 + values / 5)));

TEST(KvBytes, RefuseTypesThatNoCacheIsKeptIn) {
  EXPECT_THROW(kv_bytes({.dtype = DType::nf4}, rows, DType::bf16), Error);
  EXPECT_THROW(kv_bytes({.dtype = DType::int64}, rows, DType::bf16), Error);
  EXPECT_THROW(kv_bytes({.kind = KvLayout::Kind::mla}, rows, DType::bf16), Error);
  EXPECT_THROW(kv_bytes({.kind = KvLayout::Kind::paged, .block = 0}, rows, DType::bf16), Error);
}

const ClipVision clip{.hidden = 32, .intermediate = 64, .layers = 2, .heads = 2, .image_size = 28, .patch_size = 14};
const LlamaConfig llama{
    .vocab = 100, .hidden = 256, .intermediate = 96, .layers = 3, .heads = 4, .kv_heads = 2, .head_dim = 64};

Vlm model(const LlamaConfig& language) {
  Vlm m;
  m.family = LlavaFamily{.vision = clip, .projector = {.in = 32, .out = 256}, .language = language};
  m.image_processor = image_processor::Llava{.image_size = 28, .patch_size = 14};
  m.native = {28, 28};
  return m;
}

struct Outcome {
  Bytes prefill, decode;
  Graph graph;
  std::int64_t prompt;
};
/// A prompt and the `steps`-th step after it.
Outcome run(const Vlm& m, const Plan& plan, std::int64_t steps) {
  Bytes prefill{}, decode{};
  std::int64_t prompt = 0;
  Builder b;
  {
    Context c{b, plan, stack_of(plan)};
    const Sequences s = make_sequences(m, plan);
    prompt = s.seq;
    const InferenceCaches caches = build_inference(c, m, s, s.seq + steps);
    for (const auto& e : caches.prefill) prefill += e.bytes;
    for (const auto& e : caches.decode) decode += e.bytes;
  }
  return {prefill, decode, std::move(b.graph), prompt};
}
KvRows entry(const Plan& plan, std::int64_t tokens) { return {plan.batch, 2, 64, tokens}; }

int count(const Graph& g, const char* phase, std::string_view op) {
  int n = 0;
  for (const auto& p : g.phases)
    if (name(p.kind) == phase)
      for (NodeId i = p.first; i < p.last; ++i) n += op == g.node(i).name;
  return n;
}

// Every layout and type, in both profiles: what the graph keeps is what the formula says, for all three layers.
TEST(KvGraph, KeepsWhatTheFormulaSays) {
  using Kind = KvLayout::Kind;
  for (const Runtime runtime : runtimes)
    for (const Kind kind : {Kind::dense, Kind::paged})
      for (const std::optional<DType> type :
           {std::optional<DType>{}, std::optional(DType::fp8), std::optional(DType::int8), std::optional(DType::int4)})
        for (const std::int64_t steps : {1, 2, 100, 128, 130}) {
          Plan plan{.batch = 2, .text = 7, .runtime = runtime};
          plan.kv = {.kind = kind, .dtype = type};
          const Outcome r = run(model(llama), plan, steps);
          // transformers quantises groups once 128 tokens have come together.
          const bool waits = type && is_grouped(*type) && kind == Kind::dense && runtime == runtime_id("transformers");
          const std::int64_t recent = waits ? steps % kv_residual : 0;
          Bytes after_prompt = kv_bytes(plan.kv, entry(plan, r.prompt), DType::bf16) * 3;
          Bytes after_steps = kv_bytes(plan.kv, entry(plan, r.prompt + steps), DType::bf16, recent) * 3;
          EXPECT_EQ(r.prefill, after_prompt) << static_cast<int>(kind) << ' ' << steps;
          EXPECT_EQ(r.decode, after_steps)
              << static_cast<int>(kind) << ' ' << (type ? name(*type) : "") << ' ' << steps;
        }
}

// An fp8 cache is cast back for attention in every step; fused kernels read it as it is.
TEST(KvGraph, StepsOfAnFp8Cache) {
  Plan plan{.text = 7};
  plan.kv.dtype = DType::fp8;
  const Outcome r = run(model(llama), plan, 5);
  EXPECT_EQ(count(r.graph, "prefill", "quantize"), 6);
  EXPECT_EQ(count(r.graph, "prefill", "dequantize"), 0);
  EXPECT_EQ(count(r.graph, "decode", "quantize"), 6);
  EXPECT_EQ(count(r.graph, "decode", "dequantize"), 6);
  plan.runtime = runtime_id("fused");
  EXPECT_EQ(count(run(model(llama), plan, 5).graph, "decode", "dequantize"), 0);
}

// QuantizedCache: only the 128th token after the last time quantises anything.
TEST(KvGraph, GroupsAreQuantisedTogether) {
  Plan plan{.text = 7};
  plan.kv.dtype = DType::int4;
  EXPECT_EQ(count(run(model(llama), plan, 127).graph, "decode", "quantize"), 0);
  EXPECT_EQ(count(run(model(llama), plan, 128).graph, "decode", "quantize"), 6);
  EXPECT_EQ(count(run(model(llama), plan, 129).graph, "decode", "quantize"), 0);
}

TEST(KvGraph, SlidingLayersKeepTheirWindow) {
  LlamaConfig g = llama;
  g.window = 8;
  g.sliding = {true, true, true};
  Plan plan{.text = 20};
  const Outcome r = run(model(g), plan, 6);
  EXPECT_EQ(r.decode,
            kv_bytes({.kind = KvLayout::Kind::sliding, .window = 8}, entry(plan, r.prompt + 6), DType::bf16) * 3);
  plan.kv.dtype = DType::fp8;
  EXPECT_EQ(run(model(g), plan, 6).decode, kv_bytes({.kind = KvLayout::Kind::sliding, .window = 8, .dtype = DType::fp8},
                                                    entry(plan, r.prompt + 6), DType::bf16) *
                                               3);
  plan.kv.dtype = DType::int8;
  EXPECT_THROW(run(model(g), plan, 6), Error);
}

// One compressed row per token and layer, keys and values of all heads projected from it in every step.
TEST(KvGraph, LatentAttention) {
  LlamaConfig g = llama;
  g.latent = LatentAttention{.latent_dim = 40, .rope_dim = 16};
  Plan plan{.batch = 2, .text = 7};
  const KvLayout layout{.kind = KvLayout::Kind::mla, .latent_dim = 40, .rope_dim = 16};
  for (const Runtime runtime : runtimes) {
    plan.runtime = runtime;
    const Outcome r = run(model(g), plan, 4);
    EXPECT_EQ(r.prefill, kv_bytes(layout, entry(plan, r.prompt), DType::bf16) * 3);
    EXPECT_EQ(r.decode, kv_bytes(layout, entry(plan, r.prompt + 4), DType::bf16) * 3);
    bool expanded = false;
    for (const auto& t : r.graph.tensors) expanded = expanded || t.shape == Shape{2 * (r.prompt + 4), 2 * 4 * 64};
    EXPECT_TRUE(expanded);
  }
}

TEST(KvLayouts, ALatentCacheIsOffInTraining) {
  LlamaConfig g = llama;
  g.latent = LatentAttention{.latent_dim = 40, .rope_dim = 16};
  for (const Runtime runtime : runtimes)
    for (const AttentionKind attention : {AttentionKind::eager, AttentionKind::sdpa, AttentionKind::flash})
      for (const Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
        const Plan plan{.batch = 2, .text = 7, .attention = attention, .runtime = runtime, .checkpointing = how};
        const Vlm m = model(g);
        Builder b;
        Context c{b, plan, stack_of(plan)};
        build_training(c, m, make_sequences(m, plan));
        for (const auto& t : b.graph.tensors) EXPECT_NE(t.role, Role::kv_cache);
      }
}

TEST(KvLayouts, TheCallersChoiceCountsBeforeTheDescriptions) {
  const KvLayout paged{.kind = KvLayout::Kind::paged, .block = 32};
  EXPECT_EQ(chosen_layout(paged, {}).block, 32);
  EXPECT_EQ(chosen_layout(paged, {.dtype = DType::fp8}).kind, KvLayout::Kind::paged);
  EXPECT_EQ(chosen_layout(paged, {.dtype = DType::fp8}).dtype, DType::fp8);
  EXPECT_EQ(chosen_layout({}, {.dtype = DType::fp8}).kind, KvLayout::Kind::dense);
  EXPECT_EQ(chosen_layout(paged, {.kind = KvLayout::Kind::paged, .block = 64}).block, 64);
}

}  // namespace
}  // namespace vlmest::kv_layout_test
