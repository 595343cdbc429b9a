// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/decoder/cohere_blocks.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// Cohere's decoders (transformers models/cohere, cohere2): one norm per layer, attention and MLP side by side, rotary
/// embedding over neighbouring pairs. Cohere2 has sliding layers, and no positions at all in the others.
struct CohereConfig {
  std::int64_t vocab = 256000;
  std::int64_t hidden = 8192;
  std::int64_t intermediate = 22528;
  std::int64_t layers = 40;
  std::int64_t heads = 64;
  std::int64_t kv_heads = 64;
  std::int64_t head_dim = 128;
  bool attention_bias = false;
  bool qk_norm = false;
  Activation activation = Activation::silu;
  std::optional<std::int64_t> window;  ///< Cohere2: sliding window of the layers named in `sliding`; Cohere: none
  std::vector<bool> sliding;           ///< Cohere2: per layer; Cohere: empty
};

struct CohereLayer {
  ScopeId scope = 0;
  Projections attention;
  CohereNorm q_norm, k_norm;
  GatedMlp mlp;
  CohereNorm input_norm;
};

struct CohereDecoder {
  const CohereConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<CohereLayer> layers;
  CohereNorm norm;
  Rope rope;
};

inline CohereLayer make_cohere_layer(Context& c, const CohereConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  CohereLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.attention_bias, g.attention_bias));
    if (g.qk_norm) {
      l.q_norm = make_cohere_norm(c, "q_norm", {g.heads, g.head_dim});
      l.k_norm = make_cohere_norm(c, "k_norm", {g.kv_heads, g.head_dim});
    }
  }
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.input_norm = make_cohere_norm(c, "input_layernorm", {g.hidden});
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of CohereModel.__init__.
inline CohereDecoder make_decoder(Context& c, const CohereConfig& g) {
  CohereDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_cohere_layer(c, g, i); });
  d.norm = make_cohere_norm(c, "norm", {g.hidden});
  d.rope = make_rope(c, "rotary_emb", g.head_dim);
  return d;
}

inline Cache make_cache(const CohereConfig& g) { return empty_cache(g.layers, g.sliding, g.window); }

/// modeling_cohere2.py, Cohere2Attention.forward, and modeling_cohere.py, CohereAttention.forward, with its norms.
inline Attended self_attention(Context& c, const CohereConfig& g, const CohereLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  auto heads = [&](const Linear& p) { return view(forward(c, p, x), {batch, tokens, -1, g.head_dim}); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  Value v = heads(l.attention.v);
  if (g.qk_norm) {
    q = forward(c, l.q_norm, q);
    k = forward(c, l.k_norm, k);
  }
  q = transpose(q, 1, 2);
  k = transpose(k, 1, 2);
  v = transpose(v, 1, 2);
  if (g.sliding.empty() || cache.window) apply_paired_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a = stacks::attend(c, {q, k, v, mask, true});
  project_out(c, l.attention.out, a);
  return a;
}

/// Cohere2DecoderLayer.forward: residual + attention + MLP, both of the same normed input; attention(x) is the first.
template <class Attention>
Value parallel_layer(Context& c, const CohereLayer& l, Value arg, Attention attention) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = attention(x);  // the weights stay to the end
  Value mlp = forward(c, l.mlp, x);
  Value sum = add(residual, attended.out);
  x = add(std::move(sum), mlp);
  return x;
}
inline Value forward(Context& c, const CohereConfig& g, const CohereLayer& l, Value x, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return parallel_layer(c, l, std::move(x),
                        [&](const Value& normed) { return self_attention(c, g, l, normed, mask, positions, cache); });
}

/// Cohere2Model.forward: embeddings[B, S, hidden] -> normed hidden states. Cohere2 makes both masks whatever its layers
/// are, each sized by the first layer of its kind.
inline Value forward(Context& c, const CohereDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const CohereConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value sliding;
  if (!g.sliding.empty()) sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  Value x = embeds;
  const CosSin positions = paired_rope(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const CohereLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({entry.window ? 1 : 0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, entry.window ? sliding : full, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
