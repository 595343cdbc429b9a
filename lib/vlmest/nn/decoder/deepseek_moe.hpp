// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/moe.hpp>

namespace vlmest {

/// DeepSeek-V2's mixture of experts (DeepSeek-AI, arXiv:2405.04434, section 2.2) over Llama's attention: some layers
/// have routed experts beside shared ones, a router in fp32, whose weights are not normalised. transformers
/// models/deepseek_ocr2, DeepseekOcr2TextModel.
struct DeepseekMoeConfig {
  LlamaConfig layers;
  MoeConfig moe;
  std::int64_t shared_experts = 2;  ///< one MLP as wide as these
  bool grouped = false;             ///< group_limited_greedy: experts are chosen from the best of `groups`
  std::int64_t groups = 1;          ///< n_group
  std::int64_t top_groups = 1;      ///< topk_group
  std::vector<bool> sparse;         ///< per layer: experts instead of the MLP
};

struct DeepseekMoeLayer {
  LlamaLayer base;  ///< of a sparse layer its MLP is the shared experts'
  bool sparse = false;
  Moe moe;
};

struct DeepseekMoeDecoder {
  const DeepseekMoeConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<DeepseekMoeLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const DeepseekMoeConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const DeepseekMoeConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const DeepseekMoeConfig& g) { return make_cache(g.layers); }

/// DeepseekOcr2TextDecoderLayer.__init__ and DeepseekOcr2TextMoe.__init__: experts, router, shared experts.
inline DeepseekMoeLayer make_deepseek_moe_layer(Context& c, const DeepseekMoeConfig& g, std::int32_t index) {
  DeepseekMoeLayer l;
  l.sparse = g.sparse[static_cast<std::size_t>(index)];
  if (!l.sparse) {
    l.base = make_llama_layer(c, g.layers, index);
    return l;
  }
  Module m(c, "layers", index);
  l.base.scope = m.scope;
  make_llama_attention(c, g.layers, l.base);
  l.moe = make_moe(c, "mlp", g.moe);
  {
    InScope in(c.b, l.moe.scope);
    l.base.mlp = make_gated_mlp(c, "shared_experts", g.layers.hidden, checked_mul(g.moe.inner, g.shared_experts),
                                g.layers.mlp_bias, g.layers.activation);
  }
  make_llama_norms(c, g.layers, l.base);
  return l;
}

/// In the order of DeepseekOcr2TextModel.__init__.
inline DeepseekMoeDecoder make_decoder(Context& c, const DeepseekMoeConfig& g) {
  DeepseekMoeDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_deepseek_moe_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

/// DeepseekOcr2TextTopkRouter.forward: input and weight in fp32. Experts outside the best groups, each judged by its
/// best expert, count as zero.
inline Routing route_deepseek(Context& c, const DeepseekMoeConfig& g, const Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.router_scope);
  const Value flat = view(x, {-1, g.moe.hidden});
  const std::int64_t tokens = flat.size(0);
  Routing r;
  {
    Value wide = to(flat, DType::fp32);
    Value weight = to(Value(c.b, m.router), DType::fp32);
    r.logits = linear(std::move(wide), std::move(weight), {});
  }
  Value scores = softmax(r.logits, DType::fp32);
  Value group_scores, chosen, group_mask, mask;  // variables of the function
  if (g.grouped) {
    const std::int64_t each = g.moe.experts / g.groups;
    group_scores = max_values(view(scores, {tokens, g.groups, each}), false);
    chosen = topk(group_scores, g.top_groups, false).indices;
    group_mask = fill(c.b, "zeros_like", group_scores.shape(), group_scores.dtype());
    const MemoryOp ones{.read = data_bytes(chosen), .written = data_bytes(chosen), .dtype = group_mask.dtype()};
    Value places = chosen;
    group_mask = emit_inplace(c.b, "scatter_.value", ones, {}, group_mask, places);
    mask = reshape(expand(unsqueeze(group_mask, -1), {tokens, g.groups, each}), {tokens, g.moe.experts});
    Value outside = pointwise("bitwise_not", DType::boolean, to(mask, DType::boolean));
    scores = masked_fill(scores, std::move(outside));
  }
  Ranked top = topk(scores, g.moe.top_k, false);
  r.weights = mul_scalar(top.values);
  r.experts = std::move(top.indices);
  return r;
}

/// DeepseekOcr2TextMoe.forward: experts, then the shared ones over the same input.
inline Value sparse_forward(Context& c, const DeepseekMoeConfig& g, const DeepseekMoeLayer& l, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.moe.scope);
  const Value residuals = x;
  const Shape s = x.shape();
  const Routing r = stacks::route(c, [&] { return route_deepseek(c, g, l.moe, x); });
  x = view(x, {-1, g.moe.hidden});
  x = view(stacks::experts(c, l.moe, x, r), s);
  Value shared = forward(c, l.base.mlp, residuals);
  return add(x, std::move(shared));
}

/// DeepseekOcr2TextModel.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const DeepseekMoeDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const DeepseekMoeConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const DeepseekMoeLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    const auto feed_forward = [&](const Value& h) {
      return l.sparse ? sparse_forward(c, g, l, h) : forward(c, l.base.mlp, h);
    };
    x = stack({l.sparse ? 1 : 0, l.base.scope, l.base.attention.first()}, x, entry, [&](const Value& h) {
      return llama_layer(c, g.layers, l.base, h, mask, positions, entry, feed_forward);
    });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
