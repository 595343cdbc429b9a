// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/moe.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/experts.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The decoder of gpt-oss (transformers models/gpt_oss): attention with sinks and biases, every other layer sliding,
/// experts with biases and clamped gates in the place of the MLP.
struct GptOssConfig {
  std::int64_t vocab = 201088;
  std::int64_t hidden = 2880;
  std::int64_t intermediate = 2880;  ///< of each expert
  std::int64_t layers = 36;
  std::int64_t heads = 64;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 64;
  bool attention_bias = true;
  bool attention_dropout = false;  ///< in training mode
  MoeConfig moe{.hidden = 2880,
                .inner = 2880,
                .experts = 128,
                .top_k = 4,
                .inputs_first = true,
                .biased = true,
                .gate = ExpertGate::clamped_pairs};
  Activation activation = Activation::silu;  ///< named by the config, not used: the gates have their own
  std::optional<std::int64_t> window = 128;  ///< sliding window of the layers named in `sliding`
  std::vector<bool> sliding;                 ///< per layer
};

struct GptOssLayer {
  ScopeId scope = 0;
  Projections attention;
  TensorId sinks = none;  ///< [heads]
  Moe moe;
  RmsNorm input_norm, post_attention_norm;
};

struct GptOssDecoder {
  const GptOssConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<GptOssLayer> layers;
  RmsNorm norm;
  Rope rope;
};

/// GptOssMLP.__init__: the router before the experts.
inline Moe make_gpt_oss_moe(Context& c, const MoeConfig& g) {
  Module m(c, "mlp");
  Moe r{.config = &g, .scope = m.scope, .inner = g.inner, .experts = g.experts};
  {
    Module router(c, "router");
    r.router_scope = router.scope;
    r.router = parameter(c, "weight", {g.experts, g.hidden});
    r.router_bias = parameter(c, "bias", {g.experts});
  }
  Module e(c, "experts");
  r.experts_scope = r.activation_scope = e.scope;
  const auto wide = [&](const char* name, const Shape& shape) { return routed(c, g, parameter(c, name, shape)); };
  const WeightStorage* how = checkpoint_storage(c, StoredModule::experts);
  const bool stored = how != nullptr;
  // Mxfp4GptOssExperts (integrations/mxfp4.py): in fp32, to which core_model_loading.py casts what the file holds.
  const Fp4Weight* fp4 = how ? std::get_if<Fp4Weight>(how) : nullptr;
  const bool wider = c.stack().transformers_quantizers && fp4 && !fp4->nv && !c.quantization->unpacked_by_transformers;
  const auto bias = [&](const char* name, std::int64_t n) {
    return routed(c, g, c.b.persistent(name, Role::weight, wider ? DType::fp32 : c.dtype(), {g.experts, n}));
  };
  if (stored)
    make_expert_products(c, g, r);
  else
    r.gate_up = wide("gate_up_proj", {g.experts, g.hidden, checked_mul(g.inner, 2)});
  r.gate_up_bias = bias("gate_up_proj_bias", checked_mul(g.inner, 2));
  if (!stored) r.down = wide("down_proj", {g.experts, g.inner, g.hidden});
  r.down_bias = bias("down_proj_bias", g.hidden);
  return r;
}

inline GptOssLayer make_gpt_oss_layer(Context& c, const GptOssConfig& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gpt_oss;
  Module m(c, "layers", index);
  GptOssLayer l;
  l.scope = m.scope;
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.attention_bias, g.attention_bias));
    l.sinks = parameter(c, "sinks", {g.heads});
  }
  l.moe = make_gpt_oss_moe(c, g.moe);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of GptOssModel.__init__.
inline GptOssDecoder make_decoder(Context& c, const GptOssConfig& g) {
  GptOssDecoder d;
  d.config = &g;
  d.scope = c.b.scope();
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_gpt_oss_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gpt_oss);
  d.rope = make_rope(c, "rotary_emb", g.head_dim);
  return d;
}

inline Cache make_cache(const GptOssConfig& g) { return empty_cache(g.layers, g.sliding, g.window); }

/// modeling_gpt_oss.py, _apply_rotary_emb: the halves of each head turn against each other by angles of half its width.
inline Value turn_halves(const Value& x, const Value& cos, const Value& sin) {
  using namespace eager;
  const std::int64_t half = x.size(-1) / 2;
  const std::vector<Value> part = split(x, std::array{half, half}, -1);
  Value straight = mul(part[0], cos);
  Value across = mul(part[1], sin);
  Value first = sub(std::move(straight), std::move(across));
  straight = mul(part[1], cos);
  across = mul(part[0], sin);
  Value second = add(std::move(straight), std::move(across));
  return cat(std::move(first), std::move(second), -1);
}

/// modeling_gpt_oss.py, GptOssAttention.forward.
inline Attended self_attention(Context& c, const GptOssConfig& g, const GptOssLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Value q = split_heads(forward(c, l.attention.q, x), g.head_dim);
  Value k = split_heads(forward(c, l.attention.k, x), g.head_dim);
  Value v = split_heads(forward(c, l.attention.v, x), g.head_dim);
  stacks::rotate(c, q, k, positions.cos, positions.sin, [&] {
    Value cos = unsqueeze(positions.cos, 1), sin = unsqueeze(positions.sin, 1);
    Value turned_q = turn_halves(q, cos, sin);
    Value turned_k = turn_halves(k, cos, sin);
    q = std::move(turned_q);
    k = std::move(turned_k);
  });
  update(c, cache, k, v);
  Attended a = stacks::attend_with_sinks(
      c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout}, Value(c.b, l.sinks));
  project_out(c, l.attention.out, a);
  return a;
}

/// GptOssTopKRouter.forward: the softmax is over the chosen logits alone, in their own type.
inline Routing route_chosen(Context& c, const Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.router_scope);
  Routing r;
  r.logits = linear(x, Value(c.b, m.router), Value(c.b, m.router_bias));
  Ranked top = topk(r.logits, m.config->top_k);
  r.weights = softmax(top.values, top.values.dtype());
  r.experts = std::move(top.indices);
  return r;
}

/// What GptOssMLP.forward returns.
struct ExpertsOutput {
  Value out;     ///< [batch, tokens, hidden]
  Value scores;  ///< [batch * tokens, top_k]
};
inline ExpertsOutput gpt_oss_experts(Context& c, const Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.scope);
  const Shape s = x.shape();
  Value flat = view(x, {-1, m.config->hidden});
  const Routing r = stacks::route(c, [&] { return route_chosen(c, m, flat); });
  flat = stacks::experts(c, m, flat, r);
  return {view(std::move(flat), s), r.weights};
}

/// GptOssDecoderLayer.forward: the variable that holds attention's weights is the router's scores' afterwards.
inline Value forward(Context& c, const GptOssConfig& g, const GptOssLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended a = self_attention(c, g, l, x, mask, positions, cache);
  x = std::move(a.out);
  x = eager::add(residual, x);
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  ExpertsOutput y = gpt_oss_experts(c, l.moe, x);
  x = std::move(y.out);
  a.weights = std::move(y.scores);
  x = eager::add(residual, x);
  return x;
}

/// GptOssModel.forward: embeddings[B, S, hidden] -> normed hidden states. Both masks are made whatever the layers are.
inline Value forward(Context& caller, const GptOssDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const GptOssConfig& g = *d.config;
  const Plan plan = without_sdpa(caller.plan);
  Context c = with_plan(caller, plan);
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  const Value sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids, [](const Value& frequencies) { return frequencies; });
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const GptOssLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({entry.window ? 1 : 0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, entry.window ? sliding : full, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
