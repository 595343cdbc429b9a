// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/latent_attention.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/rope.hpp>

namespace vlmest {

/// The pre-norm decoder of Llama and those built like it: Mistral, Qwen2 (q, k, v biases), Qwen3 (per-head norms of q
/// and k). transformers models/llama, mistral, qwen2, qwen3.
struct LlamaConfig {
  std::int64_t vocab = 32000;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 11008;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t head_dim = 128;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  Activation activation = Activation::silu;
  std::optional<std::int64_t> window;  ///< sliding window of the layers named in `sliding`
  std::vector<bool> sliding;           ///< per layer; empty: none
  std::optional<LatentAttention> latent;  ///< in the place of key and value heads
};

struct LlamaLayer {
  ScopeId scope = 0;
  ScopeId attention_scope = 0;
  Linear q, k, v, o;
  RmsNorm q_norm, k_norm;
  LatentModules latent;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
};

struct LlamaDecoder {
  const LlamaConfig* config = nullptr;
  ScopeId scope = 0;
  TensorId embed_tokens = none;
  ScopeId embed_scope = 0;
  std::vector<LlamaLayer> layers;
  RmsNorm norm;
  Rope rope;
};

/// The parts of a layer in the order of LlamaDecoderLayer.__init__: attention, feed-forward, norms.
inline void make_llama_attention(Context& c, const LlamaConfig& g, LlamaLayer& l) {
  Module a(c, "self_attn");
  l.attention_scope = a.scope;
  if (g.latent) {
    l.q = make_linear(c, "q_proj", g.hidden, checked_mul(g.heads, checked_add(g.head_dim, g.latent->rope_dim)), false);
    l.latent = make_latent(c, *g.latent, g.hidden, g.heads, g.head_dim);
    l.o = make_linear(c, "o_proj", checked_mul(g.heads, g.head_dim), g.hidden, g.o_bias);
    return;
  }
  l.q = make_linear(c, "q_proj", g.hidden, checked_mul(g.heads, g.head_dim), g.qkv_bias);
  l.k = make_linear(c, "k_proj", g.hidden, checked_mul(g.kv_heads, g.head_dim), g.qkv_bias);
  l.v = make_linear(c, "v_proj", g.hidden, checked_mul(g.kv_heads, g.head_dim), g.qkv_bias);
  l.o = make_linear(c, "o_proj", checked_mul(g.heads, g.head_dim), g.hidden, g.o_bias);
  if (g.qk_norm) {
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim);
  }
}
inline void make_llama_norms(Context& c, const LlamaConfig& g, LlamaLayer& l) {
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
}

inline LlamaLayer make_llama_layer(Context& c, const LlamaConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  LlamaLayer l{.scope = m.scope};
  make_llama_attention(c, g, l);
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, g.mlp_bias, g.activation);
  make_llama_norms(c, g, l);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of LlamaModel.__init__.
inline LlamaDecoder make_decoder(Context& c, const LlamaConfig& g) {
  LlamaDecoder d{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "embed_tokens");
    d.embed_scope = e.scope;
    d.embed_tokens = parameter(c, "weight", {g.vocab, g.hidden});
  }
  d.layers.reserve(static_cast<std::size_t>(g.layers));
  for (std::int64_t i = 0; i < g.layers; ++i) d.layers.push_back(make_llama_layer(c, g, static_cast<std::int32_t>(i)));
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.latent ? g.latent->rope_dim : g.head_dim);
  return d;
}

inline Cache make_cache(const LlamaConfig& g) {
  Cache r;
  r.layers.resize(static_cast<std::size_t>(g.layers));
  for (std::size_t i = 0; i < g.sliding.size() && i < r.layers.size(); ++i)
    if (g.sliding[i]) r.layers[i].window = g.window;
  return r;
}

/// modeling_llama.py, LlamaAttention.forward (and Qwen3Attention with its norms before the transpose).
inline Attended self_attention(Context& c, const LlamaConfig& g, const LlamaLayer& l, const Value& x, const Value& mask,
                            const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const std::int64_t channels = g.latent ? checked_add(g.head_dim, g.latent->rope_dim) : g.head_dim;  // of a query head
  auto heads = [&](const Linear& p, const RmsNorm* norm) {
    Value y = view(forward(c, p, x), {batch, tokens, -1, channels});
    if (norm) y = forward(c, *norm, std::move(y));
    return transpose(std::move(y), 1, 2);
  };
  Value q = heads(l.q, g.qk_norm ? &l.q_norm : nullptr);
  Value k, v;
  Attended a;
  if (g.latent) {
    a = latent_attention(c, *g.latent, l.latent, std::move(q), x, mask, positions, cache);
  } else {
    k = heads(l.k, g.qk_norm ? &l.k_norm : nullptr);
    v = heads(l.v, nullptr);
    apply_rope(c, q, k, positions);
    update(c, cache, k, v);
    a = attend(c, {q, k, v, mask, true});
  }
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = forward(c, l.o, a.out);
  return a;
}

/// modeling_llama.py, LlamaDecoderLayer.forward; `feed_forward` runs what stands in the place of its MLP.
template <class FeedForward>
Value llama_layer(Context& c, const LlamaConfig& g, const LlamaLayer& l, Value arg, const Value& mask,
                  const CosSin& positions, CacheLayer& cache, FeedForward&& feed_forward) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = self_attention(c, g, l, x, mask, positions, cache);  // the weights stay to the end
  x = std::move(attended.out);
  x = add(residual, x);
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  x = feed_forward(x);
  x = add(residual, x);
  return x;
}

inline Value forward(Context& c, const LlamaConfig& g, const LlamaLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return llama_layer(c, g, l, std::move(arg), mask, positions, cache, [&](const Value& x) { return forward(c, l.mlp, x); });
}

inline Value embed(Context& c, const LlamaDecoder& d, const Value& input_ids) {
  InScope in(c.b, d.embed_scope);
  return eager::embedding(Value(c.b, d.embed_tokens), input_ids);
}

/// modeling_llama.py, LlamaModel.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const LlamaDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const LlamaConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t tokens = embeds.size(1);
  Value position_ids = arange(c.b, tokens);
  position_ids = unsqueeze(add_scalar(position_ids), 0);
  const bool any_full = std::count(g.sliding.begin(), g.sliding.end(), true) < g.layers;
  Value full, sliding;
  if (any_full) full = causal_mask(c, mask_shape(cache, embeds.size(0), tokens, false), attention_mask);
  if (g.window && !g.sliding.empty()) {
    MaskShape shape = mask_shape(cache, embeds.size(0), tokens, true);
    shape.window = g.window;
    sliding = causal_mask(c, shape, attention_mask);
  }
  Value x = embeds;
  CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const LlamaLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({entry.window ? 1 : 0, l.scope, l.q.weight}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, entry.window ? sliding : full, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
