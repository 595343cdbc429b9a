// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/moe.hpp>

namespace vlmest {

/// Aria's language model (transformers 5.17 models/aria, AriaTextModel): Llama's attention, and in every layer experts
/// beside shared ones, which every token goes through. The router chooses by its logits; their softmax over the chosen
/// ones weighs. Defaults: AriaTextConfig.
struct AriaTextConfig {
  LlamaConfig layers{.intermediate = 4096};  ///< its `intermediate` is that of an expert
  MoeConfig moe{.hidden = 4096, .inner = 4096, .experts = 8, .top_k = 2, .inputs_first = true, .sequential = true};
  std::int64_t shared_experts = 2;  ///< moe_num_shared_experts: one MLP, so many times as wide as an expert
};

struct AriaTextLayer {
  LlamaLayer base;  ///< its MLP is the shared experts'
  Moe moe;
};

struct AriaTextDecoder {
  const AriaTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<AriaTextLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const AriaTextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const AriaTextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const AriaTextConfig& g) { return make_cache(g.layers); }

/// AriaGroupedExpertsGemm.__init__: weight[experts, in, out] in a module of its own.
inline TensorId make_grouped_gemm(Context& c, const char* name, const MoeConfig& g, std::int64_t in, std::int64_t out,
                                  ScopeId& scope) {
  Module m(c, name);
  scope = m.scope;
  return routed(c, g, parameter(c, "weight", {g.experts, in, out}));
}

/// In the order of AriaTextDecoderLayer.__init__ and AriaTextMoELayer.__init__.
inline AriaTextLayer make_aria_layer(Context& c, const AriaTextConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  AriaTextLayer l;
  l.base.scope = m.scope;
  make_llama_attention(c, g.layers, l.base);
  {
    Module mlp(c, "mlp");
    Moe& r = l.moe;
    r.config = &g.moe;
    r.scope = mlp.scope;
    r.inner = g.moe.inner;
    r.experts = g.moe.experts;
    r.router_linear = make_linear(c, "router", g.moe.hidden, g.moe.experts, false);
    r.router = r.router_linear.weight;
    r.router_scope = r.router_linear.scope;
    {
      Module e(c, "experts");
      r.experts_scope = e.scope;
      r.gate_up = make_grouped_gemm(c, "fc1", g.moe, g.moe.hidden, checked_mul(g.moe.inner, 2), r.gate_up_scope);
      r.down = make_grouped_gemm(c, "fc2", g.moe, g.moe.inner, g.moe.hidden, r.down_scope);
    }
    l.base.mlp = make_gated_mlp(c, "shared_experts", g.moe.hidden, checked_mul(g.moe.inner, g.shared_experts),
                                g.layers.mlp_bias, g.layers.activation);
  }
  make_llama_norms(c, g.layers, l.base);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of AriaTextModel.__init__.
inline AriaTextDecoder make_decoder(Context& c, const AriaTextConfig& g) {
  AriaTextDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_aria_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

/// AriaExperts.route_tokens_to_experts, over the logits of AriaTextMoELayer's router.
inline Routing route_aria(Context& c, const Moe& m, const Value& flat) {
  using namespace eager;
  Routing r;
  r.logits = forward(c, m.router_linear, flat);
  InScope in(c.b, m.experts_scope);
  Ranked top = topk(r.logits, m.config->top_k);
  r.weights = softmax(top.values);
  r.experts = std::move(top.indices);
  return r;
}

/// AriaTextMoELayer.forward: x[batch, tokens, hidden].
inline Value aria_feed_forward(Context& c, const AriaTextLayer& l, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.moe.scope);
  const Shape s = x.shape();
  x = view(x, {-1, l.moe.config->hidden});
  Routing r = stacks::route(c, [&] { return route_aria(c, l.moe, x); });
  const Value logits = r.logits;  // a variable here, while weights and places are the experts' own
  const Value of_experts = view(stacks::experts(c, l.moe, x, std::exchange(r, {})), s);
  const Value shared = forward(c, l.base.mlp, view(x, s));
  return add(of_experts, shared);
}

/// AriaTextModel.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const AriaTextDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const AriaTextConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const AriaTextLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    // Of a recorded run every layer's tokens go elsewhere.
    const int kind = c.routed_rows ? static_cast<int>(i) : 0;
    x = stack({kind, l.base.scope, l.base.attention.first()}, x, entry, [&](const Value& h) {
      return llama_layer(c, g.layers, l.base, h, mask, positions, entry,
                         [&](const Value& y) { return aria_feed_forward(c, l, y); });
    });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
