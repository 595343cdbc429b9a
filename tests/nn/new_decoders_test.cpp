// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V3, GPT-OSS, InternLM2, Mistral 4, Ministral 3, Granite and Phi-3 against figures counted by hand: what a
// layer saves for its backward, what caches hold, FLOPs, and what lives how long.
#include <gtest/gtest.h>

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "new_decoders_support.hpp"

namespace vlmest::new_decoders_test {
namespace {

using namespace test;

constexpr std::int64_t B = 2, S = 10, T = B * S;

/// Bytes that are alive when the forward has ended, parameters and buffers aside.
std::int64_t saved(const DecoderConfig& language, AttentionKind attention = AttentionKind::eager) {
  const Graph g = training(around(language), text_plan(attention));
  const NodeId end = g.phases.front().last;
  Bytes n{};
  for (const Tensor& t : g.tensors) {
    const bool stays = t.role == Role::weight || t.role == Role::buffer;
    if (t.alias_of == none && !stays && t.born < end && (t.dies == none || t.dies >= end)) n += requested_bytes(t);
  }
  return n.value();
}
/// And of a layer between others.
template <class Make>
std::int64_t saved_by_layer(Make make, AttentionKind attention = AttentionKind::eager) {
  return saved(make(3), attention) - saved(make(2), attention);
}

TEST(NewDecodersSave, GptOssEager) {
  constexpr std::int64_t H = 64, heads = 4, D = 16, E = 6, K = 2, I = 40, R = T * K;
  // GptOssRMSNorm: the fp32 input, 1 / rms, the normed fp32 input (the weight's factor), and the result, which the
  // linears save. Twice.
  const std::int64_t norms = 2 * (4 * T * H + 4 * T + 4 * T * H + 2 * T * H);
  // Queries, repeated keys and values, the output layer's input; the places of the largest logits (int64); the
  // probabilities with the sink's column. Rotations save angles, which all layers share.
  const std::int64_t attention = 4 * (2 * T * heads * D) + 8 * T * heads + 2 * T * heads * (S + 1);
  // The places of the chosen logits (int64) and their softmax.
  const std::int64_t router = 8 * T * K + 2 * T * K;
  // int64: which row is taken from where, the order, the sorted experts (for the biases), the way back; bool: rows of
  // other ranks; int32: offsets.
  const std::int64_t order = 4 * (8 * R) + R + 4 * E;
  // The gathered rows; gate and up in one tensor, of which both clamps save their view; the clamped gate, its sigmoid,
  // up + 1, their gated product; the second product's input; its masked result and each row's share.
  const std::int64_t experts =
      2 * R * H + 2 * R * 2 * I + 2 * R * I + 2 * R * I + 2 * R * I + 2 * R * I + 2 * R * I + 2 * R * H + 2 * R;
  EXPECT_EQ(saved_by_layer([](std::int64_t n) { return small_gpt_oss(n); }),
            norms + attention + router + order + experts);
}

TEST(NewDecodersSave, Mistral4Eager) {
  constexpr std::int64_t H = 64, heads = 4, E = 6, K = 2, I = 40, R = T * K;
  constexpr std::int64_t q_rank = 24, kv_rank = 20, qk = 12 + 8, v = 16;
  // RMS norm over n channels: fp32 input and 1 / rms, the input cast back (the weight's factor), the result.
  const auto norm = [](std::int64_t n) { return 4 * T * n + 4 * T + 2 * T * n + 2 * T * n; };
  // The scale of the queries; queries and keys; values, which are copied to rows without gaps; the output layer's
  // input; the softmax in fp32 and cast.
  const std::int64_t attention =
      2 * S + 2 * (2 * T * heads * qk) + 2 * T * heads * v + 2 * T * heads * v + (4 + 2) * T * heads * S;
  // The softmax over all experts, the chosen places, their weights before the division and what they were divided by.
  const std::int64_t router = 2 * T * E + 8 * T * K + 2 * T * K + 2 * T;
  const std::int64_t order = 3 * (8 * R) + R + 4 * E;
  // The gathered rows, gate and up, the activated gate, the second product's input, its masked result, the shares.
  const std::int64_t experts = 2 * R * H + 2 * R * 2 * I + 2 * R * I + 2 * R * I + 2 * R * H + 2 * R;
  const std::int64_t shared = 4 * (2 * T * I);  // gate, activated gate, up, product
  EXPECT_EQ(saved_by_layer([](std::int64_t n) { return small_mistral4(n); }),
            2 * norm(H) + norm(q_rank) + norm(kv_rank) + attention + router + order + experts + shared);
}

/// Of a Llama layer, eager: two norms; queries, repeated keys and values, the output layer's input; the softmax in fp32
/// and cast; gate, activated gate, up, product.
constexpr std::int64_t llama_layer_saves =
    2 * (4 * T * 64 + 4 * T + 2 * T * 64 + 2 * T * 64) + 4 * (2 * T * 64) + (4 + 2) * T * 4 * S + 4 * (2 * T * 80);

TEST(NewDecodersSave, VariantsOfLlamaEager) {
  EXPECT_EQ(saved_by_layer(small_llama), llama_layer_saves);
  EXPECT_EQ(saved_by_layer(small_granite), llama_layer_saves) << "a factor that is a number saves nothing";
  EXPECT_EQ(saved_by_layer(small_ministral3), llama_layer_saves + 2 * S) << "the scale of each position";
  EXPECT_EQ(saved_by_layer(small_phi3), llama_layer_saves) << "views of what one product gave";
  // Each layer gathers its own angles, cosine and sine.
  EXPECT_EQ(saved_by_layer(small_internlm2), llama_layer_saves + 2 * (2 * S * 16));
}

/// FLOPs of the language model and its head in the prefill, for the last token's logits.
std::int64_t prefill_flops(const DecoderConfig& language, AttentionKind attention = AttentionKind::eager) {
  const Graph g = inference(around(language), text_plan(attention));
  Flops n{};
  for (NodeId i = g.phases[0].first; i < g.phases[0].last; ++i) {
    const Cost one = cost(g.op(g.node(i)));
    n += one.flops + one.uncounted;  // grouped products, which FlopCounterMode does not know
  }
  return n.value();
}
TEST(NewDecodersFlops, FollowTheMatrices) {
  constexpr std::int64_t layers = 3, H = 64, heads = 4, kv = 2, D = 16, V = 96;
  const std::int64_t head = 2 * B * H * V, angles = S * D;  // [D/2, 1] x [1, S] and half of it, twice
  const std::int64_t scores = 2 * 2 * B * heads * S * S * D;
  const std::int64_t projections = 2 * T * H * (heads * D + 2 * kv * D) + 2 * T * heads * D * H;
  const std::int64_t mlp = 2 * T * 3 * H * 80;
  EXPECT_EQ(prefill_flops(small_llama(layers)), layers * (projections + scores + mlp) + head + angles);
  EXPECT_EQ(prefill_flops(small_ministral3(layers)), prefill_flops(small_llama(layers)));
  EXPECT_EQ(prefill_flops(small_granite(layers)), prefill_flops(small_llama(layers)));
  EXPECT_EQ(prefill_flops(small_phi3(layers)), prefill_flops(small_llama(layers)));
  EXPECT_EQ(prefill_flops(small_internlm2(layers)), layers * (projections + scores + mlp) + head);
  const std::int64_t experts = 2 * T * H * 6 + 2 * T * 2 * 3 * H * 40;
  EXPECT_EQ(prefill_flops(small_gpt_oss(layers)), layers * (projections + scores + experts) + head + angles);
  const std::int64_t latent = 2 * T * (H * 24 + 24 * heads * 20 + H * (20 + 8) + 20 * heads * (12 + 16)) +
                              2 * T * heads * 16 * H + 2 * B * heads * S * S * (20 + 16);
  const std::int64_t shared = 2 * T * 3 * H * 40;
  EXPECT_EQ(prefill_flops(small_mistral4(layers)),
            layers * (latent + experts + shared) + head + S * 8);  // eight channels turn
  EXPECT_EQ(prefill_flops(small_deepseek_v3(layers)), prefill_flops(small_mistral4(layers)));
}

std::int64_t cached(const DecoderConfig& language, std::int64_t seen, DType t = DType::bf16) {
  Plan plan = text_plan();
  plan.dtype = t;
  Builder b;
  Context c{b, plan, stack_of(plan)};
  const Vlm v = around(language);
  const InferenceCaches caches = build_inference(c, v, make_sequences(v, plan), seen);
  Bytes n{};
  for (const CacheEntry& e : caches.decode) n += e.bytes;
  return n.value();
}
TEST(NewDecodersCache, HoldsWhatItsLayersKeep) {
  constexpr std::int64_t row = 2 * 2 * 16 * 2 * B;  // keys and values of two heads of 16 channels, two bytes each
  // A window of eight keeps seven tokens between steps.
  EXPECT_EQ(cached(small_gpt_oss(4, {true, false, true, false}), 30), 2 * 7 * row + 2 * 30 * row);
  EXPECT_EQ(cached(small_gpt_oss(4, {true, false, true, false}), 11), 2 * 7 * row + 2 * 11 * row);
  EXPECT_EQ(cached(small_internlm2(3), 30), 3 * 30 * row);
  EXPECT_EQ(cached(small_phi3(3), 30), 3 * 30 * row);
  EXPECT_EQ(cached(small_mistral4(3), 30), 3 * 30 * (20 + 8) * 2 * B) << "one latent and one turned key of each token";
}

TEST(NewDecodersRun, GptOssWithoutFusedAttention) {
  const Vlm v = around(small_gpt_oss(2));
  EXPECT_EQ(rows(inference(v, text_plan())), rows(inference(v, text_plan(AttentionKind::eager))));
  EXPECT_EQ(rows(training(v, text_plan())), rows(training(v, text_plan(AttentionKind::eager))));
  EXPECT_THROW(inference(v, text_plan(AttentionKind::flash)), Error);
  const Graph g = inference(v, text_plan());
  EXPECT_EQ(count(g, 0, "max.dim", "self_attn"), 2);
  EXPECT_EQ(count(g, 0, "_softmax", "mlp.router"), 2);
}

TEST(NewDecodersRun, GptOssNormsStayInFp32WhereTheModelIsInFp16) {
  Plan plan = text_plan();
  plan.dtype = DType::fp16;
  const Graph g = inference(around(small_gpt_oss(2)), plan);
  int wide = 0;
  for (const Tensor& t : g.tensors)
    wide += t.role == Role::weight && t.dtype == DType::fp32 &&
            path(g, t.scope).find("language_model") != std::string::npos;
  EXPECT_EQ(wide, 2 * 2 + 1);
}

TEST(NewDecodersRun, EveryParameterOfTheLanguageModelIsTrained) {
  // Adam's two states of every parameter: nothing is trained that the loss does not reach.
  for (const DecoderConfig& language : {DecoderConfig(small_gpt_oss(2)), DecoderConfig(small_mistral4(2)),
                                        DecoderConfig(small_internlm2(2)), DecoderConfig(small_phi3(2))})
    for (const Runtime runtime : runtimes) {
      Plan plan = text_plan();
      plan.runtime = runtime;
      const Graph g = training(around(language), plan);
      Elements parameters{}, states{};
      for (const Tensor& t : g.tensors) {
        const bool counts = t.alias_of == none && t.shape.rank() > 0;
        const Part part = g.scopes[static_cast<std::size_t>(t.scope)].part;
        if (counts && t.role == Role::weight && part == Part::language) parameters += t.storage;
        if (counts && t.role == Role::optimizer_state) states += t.storage;
      }
      EXPECT_EQ(states.value(), 2 * parameters.value()) << language.index() << " " << static_cast<int>(runtime);
    }
}

TEST(NewDecodersRun, LatentValuesAreWidenedForFlashAttention) {
  const auto flash = [](const DeepseekConfig& g) { return inference(around(g), text_plan(AttentionKind::flash)); };
  const Graph padded = flash(small_mistral4(1));
  EXPECT_EQ(count(padded, 0, "_flash_attn_forward"), 1);
  DeepseekConfig even = small_mistral4(1);
  even.attention.v_dim = even.attention.qk_dim();
  EXPECT_EQ(count(padded, 0, "constant_pad_nd"), count(flash(even), 0, "constant_pad_nd") + 1);
  DeepseekConfig wide = small_mistral4(1);
  wide.attention.v_dim = wide.attention.qk_dim() + 2;
  EXPECT_THROW(flash(wide), Error);
}

TEST(NewDecodersRun, InternLm2KeepsTheTupleOfTheCallerAndTheValuesProjection) {
  const Graph g = inference(around(small_internlm2(2)), text_plan());
  const Phase decode = g.phases[1];
  NodeId norm = none;
  for (NodeId i = decode.first; i < decode.last; ++i)
    if (path(g, g.node(i).scope) == "model.language_model.norm" && norm == none) norm = i;
  ASSERT_NE(norm, none);
  int keys = 0, projections = 0;
  for (const Tensor& t : g.tensors) {
    if (t.role != Role::kv_cache || t.alias_of != none || t.born >= decode.first) continue;
    EXPECT_GE(t.dies, norm) << "earlier keys and values live until the model has run";
    keys += t.storage == Elements(T * 2 * 16);
    projections += t.storage == Elements(T * (4 + 2 * 2) * 16);  // queries, keys and values in one
  }
  EXPECT_EQ(keys, 2);
  EXPECT_EQ(projections, 2);
  EXPECT_EQ(count(g, 0, "full"), 1);
  EXPECT_EQ(count(g, 1, "full"), 0) << "a single token needs no causal mask";
}

TEST(NewDecodersRun, InternLm2HasTablesInEveryLayerAndNoneBeyondThem) {
  const Graph g = inference(around(small_internlm2(2)), text_plan());
  Bytes tables{};
  for (const Tensor& t : g.tensors)
    if (t.role == Role::buffer && path(g, t.scope).find("rotary_emb") != std::string::npos)
      tables += requested_bytes(t);
  EXPECT_EQ(tables, Bytes(2 * (2 * 64 * 16 * 2 + 8 * 4)));
  Plan longer = text_plan();
  longer.text = 65;
  EXPECT_THROW(inference(around(small_internlm2(2)), longer), Error);
}

TEST(NewDecodersRun, EachVariantOfLlamaAddsItsOwnOps) {
  const auto ops = [](const LlamaConfig& g, const char* op, const char* within) {
    return count(inference(around(g), text_plan(AttentionKind::eager)), 0, op, within);
  };
  EXPECT_EQ(ops(small_llama(3), "log", ""), 0);
  EXPECT_EQ(ops(small_ministral3(3), "log", "self_attn"), 3);
  EXPECT_EQ(ops(small_granite(3), "mul.Tensor", "") - ops(small_llama(3), "mul.Tensor", ""), 1 + 2 * 3);
  EXPECT_EQ(ops(small_llama(3), "mm", "layers.") - ops(small_phi3(3), "mm", "layers."), 3 * (2 + 1));
  EXPECT_EQ(ops(small_phi3(3), "cat", "layers.") - ops(small_llama(3), "cat", "layers."), 3 * 2);
  LlamaConfig longrope = small_phi3(3);
  longrope.longrope = S;
  longrope.rotary_dim = 12;
  EXPECT_EQ(ops(longrope, "max", "rotary_emb"), 1);
  EXPECT_EQ(ops(longrope, "pow.Scalar", "rotary_emb"), 0);
  longrope.longrope = S - 1;
  EXPECT_EQ(ops(longrope, "pow.Scalar", "rotary_emb"), 1)
      << "other frequencies are computed beyond the original length";
}

/// What the backward of a checkpointed layer runs before it needs something saved, and the layer runs again.
TEST(NewDecodersRun, CheckpointedLayersRunAgainWhenSomethingSavedIsAskedFor) {
  const auto before = [](const DecoderConfig& language) {
    Plan plan = text_plan();
    plan.checkpointing = Checkpointing::full;
    const Graph g = training(around(language), plan);
    std::vector<std::string> r;
    for (const SecondForward& s : g.second_forwards) {
      const Node& n = g.node(s.first - 1);
      const std::string layer = path(g, g.node(s.first).scope), module = path(g, n.scope);
      r.push_back(layer.starts_with(module + ".") || module.find(".mlp") != std::string::npos ? n.name : "");
    }
    return r;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(before(small_llama(2)), (Names{"", ""}));
  EXPECT_EQ(before(small_granite(2)), (Names{"mul.Tensor", "mul.Tensor"})) << "a factor that is a number is not saved";
  EXPECT_EQ(before(small_gpt_oss(2)), (Names{"clone", "clone"})) << "rows of the experts' sum";
}

TEST(NewDecodersRun, DeepseekV3RoutesInFp32) {
  const Graph g = inference(around(small_deepseek_v3(1)), text_plan());
  EXPECT_EQ(count(g, 0, "sigmoid", "layers.0.mlp.gate"), 1);
  EXPECT_EQ(count(g, 0, "_softmax", "layers.0.mlp.gate"), 0);
  int corrections = 0, wide = 0;
  for (const Tensor& t : g.tensors) {
    if (std::string_view(t.name) == "e_score_correction_bias")
      corrections += t.role == Role::buffer && t.dtype == DType::fp32;
    wide += std::string_view(t.name) == "mul.Tensor" && t.dtype == DType::fp32 && t.shape == Shape{T * 2, 64};
  }
  EXPECT_EQ(corrections, 1);
  EXPECT_GT(wide, 0) << "rows of experts times fp32 weights";
}

TEST(NewDecodersRun, Mistral4CachesBeforeItExpands) {
  const Graph g = inference(around(small_mistral4(2, 1)), text_plan());
  EXPECT_EQ(count(g, 0, "topk", "layers.0."), 0);
  EXPECT_EQ(count(g, 0, "topk", "layers.1.mlp.gate"), 3);
  EXPECT_EQ(count(g, 0, "mm", "layers.1.mlp.shared_experts"), 3);
  std::vector<std::int64_t> rows;  // of the matrix that expands latents: all that are cached
  for (NodeId i = g.phases[1].first; i < g.phases[1].last; ++i)
    if (path(g, g.node(i).scope).ends_with("kv_b_proj"))
      if (const auto* m = std::get_if<Matmul>(&g.op(g.node(i)))) rows.push_back(m->m);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{B * (S + 1), B * (S + 1)}));
}

}  // namespace
}  // namespace vlmest::new_decoders_test
