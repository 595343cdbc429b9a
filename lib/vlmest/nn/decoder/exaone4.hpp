// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// EXAONE 4 (transformers models/exaone4): norms behind attention and MLP instead of before them, per-head norms of q
/// and k, and where some layers have a window no positions in the others. Defaults: Exaone4Config.
struct Exaone4Config {
  std::int64_t vocab = 102400;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 16384;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t head_dim = 128;
  bool attention_dropout = false;  ///< in training mode, of eager attention's weights
  Activation activation = Activation::silu;
  std::optional<std::int64_t> window;  ///< sliding window of the layers named in `sliding`
  std::vector<bool> sliding;           ///< per layer
};

struct Exaone4Layer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  GatedMlp mlp;
  RmsNorm post_attention_norm, post_feedforward_norm;
};

struct Exaone4Decoder {
  const Exaone4Config* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Exaone4Layer> layers;
  RmsNorm norm;
  Rope rope;
};

inline Cache make_cache(const Exaone4Config& g) { return empty_cache(g.layers, g.sliding, g.window); }

/// In the order of Exaone4DecoderLayer.__init__.
inline Exaone4Layer make_exaone4_layer(Context& c, const Exaone4Config& g, std::int32_t index) {
  Module m(c, "layers", index);
  Exaone4Layer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, false, false));
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim);
  }
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of Exaone4Model.__init__.
inline Exaone4Decoder make_decoder(Context& c, const Exaone4Config& g) {
  Exaone4Decoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_exaone4_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.head_dim);
  return d;
}

/// modeling_exaone4.py, Exaone4Attention.forward: heads are normed where they have been moved to the front.
inline Attended self_attention(Context& c, const Exaone4Config& g, const Exaone4Layer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  InScope in(c.b, l.attention.scope);
  const auto heads = [&](const Linear& p) { return split_heads(forward(c, p, x), g.head_dim); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  Value v = heads(l.attention.v);
  q = forward(c, l.q_norm, q);
  k = forward(c, l.k_norm, k);
  if (!g.window || cache.window) apply_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_exaone4.py, Exaone4DecoderLayer.forward: x + norm(attention(x)), then x + norm(mlp(x)).
inline Value forward(Context& c, const Exaone4Config& g, const Exaone4Layer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  Attended attended = self_attention(c, g, l, x, mask, positions, cache);  // the weights stay to the end
  x = std::move(attended.out);
  x = forward(c, l.post_attention_norm, x);
  x = eager::add(residual, x);
  residual = x;
  x = forward(c, l.mlp, x);
  x = forward(c, l.post_feedforward_norm, x);
  x = eager::add(residual, x);
  return x;
}

/// modeling_exaone4.py, Exaone4Model.forward from the masks on, which it makes for full layers whether there are any or
/// not: embeddings[B, S, hidden], positions[1, S] -> normed hidden states.
inline Value forward(Context& c, const Exaone4Decoder& d, Value arg, const Value& position_ids,
                     const Value& attention_mask, Cache& cache) {
  const Exaone4Config& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value sliding;
  if (std::find(g.sliding.begin(), g.sliding.end(), true) != g.sliding.end())
    sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Exaone4Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({entry.window ? 1 : 0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, entry.window ? sliding : full, positions, entry); });
  }
  return forward(c, d.norm, x);
}
/// As …ForCausalLM calls it: positions count on from the cache.
inline Value forward(Context& c, const Exaone4Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  Value embeds = std::move(arg), position_ids;
  {
    InScope in(c.b, d.scope);
    position_ids = text_positions(c, embeds.size(1));
  }
  return forward(c, d, std::move(embeds), position_ids, attention_mask, cache);
}

}  // namespace vlmest
