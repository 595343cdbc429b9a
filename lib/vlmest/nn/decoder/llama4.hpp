// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/complex_rope.hpp>
#include <vlmest/nn/decoder/llama4_moe.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The decoder of Llama 4 (transformers models/llama4, Llama4TextModel): layers with rotary positions, which see their
/// own chunk of the sequence, and between them layers without positions, which see all of it with queries scaled by
/// their place (Nakanishi, Scalable-Softmax, arXiv:2501.19399); in some layers a mixture of experts, in the others one
/// MLP. Defaults: Llama4TextConfig.
struct Llama4Config {
  std::int64_t vocab = 202048;
  std::int64_t hidden = 5120;
  std::int64_t intermediate = 8192;  ///< of an expert, the shared one too
  std::int64_t dense = 16384;        ///< intermediate_size_mlp: of layers without experts
  std::int64_t layers = 48;
  std::int64_t heads = 40;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 128;
  bool attention_bias = false;
  bool attention_dropout = false;  ///< in training mode
  bool qk_norm = true;             ///< of heads in layers with rotary positions
  bool temperature = true;         ///< attn_temperature_tuning: queries of the others are scaled
  Activation activation = Activation::silu;
  MoeConfig moe{.hidden = 5120,
                .inner = 8192,
                .experts = 16,
                .top_k = 1,
                .normalised = false,
                .shared = 8192,
                .inputs_first = true};
  std::int64_t chunk = 8192;  ///< attention_chunk_size
  std::vector<bool> chunked;  ///< per layer: layer_types "chunked_attention"
  std::vector<bool> rotary;   ///< per layer: no_rope_layers, whose ones have positions
  std::vector<bool> sparse;   ///< per layer: moe_layers
};

struct Llama4Layer {
  ScopeId scope = 0;
  bool rotary = false, sparse = false;
  Projections attention;
  RmsNorm qk_norm;
  Moe moe;       ///< where sparse
  GatedMlp mlp;  ///< elsewhere
  RmsNorm input_norm, post_attention_norm;
};

struct Llama4Decoder {
  const Llama4Config* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Llama4Layer> layers;
  RmsNorm norm;
  Rope rope;
};

/// In the order of Llama4TextDecoderLayer.__init__.
inline Llama4Layer make_llama4_layer(Context& c, const Llama4Config& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::llama4;
  const auto at = static_cast<std::size_t>(index);
  Module m(c, "layers", index);
  Llama4Layer l{.scope = m.scope, .rotary = g.rotary[at], .sparse = g.sparse[at]};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.attention_bias, g.attention_bias));
    if (g.qk_norm && l.rotary) l.qk_norm = make_weightless_norm(c, "qk_norm", kind);
  }
  if (l.sparse)
    l.moe = make_llama4_moe(c, g.moe);
  else
    l.mlp = make_gated_mlp(c, "feed_forward", g.hidden, g.dense, false, g.activation, "activation_fn");
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of Llama4TextModel.__init__. Throws Error
/// for FlashAttention, which the class refuses (Llama4PreTrainedModel, _supports_flash_attn).
inline Llama4Decoder make_decoder(Context& c, const Llama4Config& g) {
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "Llama 4 has no FlashAttention path: transformers refuses it", "use sdpa or eager");
  Llama4Decoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_llama4_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::llama4);
  d.rope = make_rope(c, "rotary_emb", g.head_dim);
  return d;
}

/// To the cache a chunk is a window (cache_utils.py, DYNAMIC_LAYER_TYPE_MAPPING).
inline Cache make_cache(const Llama4Config& g) { return empty_cache(g.layers, g.chunked, g.chunk); }

/// What Llama4TextAttention.forward has of its temperature tuning in variables.
struct QueryTemperature {
  Value positions;  ///< int64[S]
  Value scales;     ///< fp32[B, S, 1, 1]
};
/// q[B, S, H, D] times 1 + attn_scale log(1 + floor((position + 1) / floor_scale)), in fp32 and back.
inline QueryTemperature scale_by_place(Context& c, Value& q) {
  using namespace eager;
  const std::int64_t batch = q.size(0), tokens = q.size(1);
  QueryTemperature t;
  Value counted = arange(c.b, tokens);
  t.positions = add_scalar(std::move(counted));
  Value x = add_scalar(to(t.positions, DType::fp32));
  x = unary("floor", div_scalar(std::move(x)));
  x = unary("log1p", std::move(x));
  x = mul_scalar(std::move(x));
  t.scales = expand(view(add_scalar(std::move(x)), {1, tokens, 1, 1}), {batch, tokens, 1, 1});
  Value scaled = mul(q, t.scales);
  q = to(std::move(scaled), q.dtype());
  return t;
}

/// modeling_llama4.py, Llama4TextAttention.forward. turns: complex64[1, S, 1, D / 2].
inline Attended self_attention(Context& c, const Llama4Config& g, const Llama4Layer& l, const Value& x,
                               const Value& mask, const Value& turns, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {batch, tokens, -1, g.head_dim}); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  Value v = transpose(heads(l.attention.v), 1, 2);
  QueryTemperature temperature;
  if (l.rotary) {
    turn_pairs(c, q, k, turns);
    if (g.qk_norm) {
      q = forward(c, l.qk_norm, q);
      k = forward(c, l.qk_norm, k);
    }
  } else if (g.temperature && c.stack().scales_queries) {
    temperature = scale_by_place(c, q);
  }
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  update(c, cache, k, v);
  Attended a = stacks::attend(
      c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout, .fp32_softmax = false});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_llama4.py, Llama4TextDecoderLayer.forward: what attention gave stays in a variable to the end, and the
/// variable of its weights is that of the router's logits afterwards.
inline Value forward(Context& c, const Llama4Config& g, const Llama4Layer& l, Value arg, const Value& mask,
                     const Value& turns, CacheLayer& cache) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = self_attention(c, g, l, x, mask, turns, cache);
  x = add(residual, attended.out);
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  if (l.sparse) {
    MixedTokens y = mix(c, l.moe, x);
    x = std::move(y.out);
    attended.weights = std::move(y.logits);
  } else {
    x = forward(c, l.mlp, x);
  }
  return add(residual, view(x, residual.shape()));
}

/// modeling_llama4.py, Llama4TextModel.forward: embeddings[B, S, hidden] -> normed hidden states. Both masks are made
/// whatever the layers are.
inline Value forward(Context& c, const Llama4Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const Llama4Config& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  MaskShape own_chunk = mask_shape(cache, batch, tokens, g.chunk);
  own_chunk.chunked = true;
  const Value chunk = causal_mask(c, own_chunk, attention_mask);
  Value x = embeds;
  const Value turns = unsqueeze(complex_angles(c, d.rope, position_ids), 2);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Llama4Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    const int kind = (entry.window ? 1 : 0) + (l.rotary ? 2 : 0) + (l.sparse ? 4 : 0);
    x = stack({kind, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, entry.window ? chunk : full, turns, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
