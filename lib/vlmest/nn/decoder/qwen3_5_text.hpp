// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <vlmest/nn/decoder/qwen3_vl_text.hpp>
#include <vlmest/nn/gated_delta_net.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The language model of Qwen3.5, 3.6 and 3.8, dense and with experts: layers of linear attention (Gated DeltaNet) and,
/// mostly every fourth, layers of gated full attention with per-head norms and partly rotated heads, under positions of
/// three axes. transformers 5.17 models/qwen3_5 and models/qwen3_5_moe, class …TextModel.
struct Qwen35TextConfig {
  /// Sizes of the full layers; `rotary_dim` channels of a head turn.
  LlamaConfig layers{.vocab = 248320,
                     .hidden = 4096,
                     .intermediate = 12288,
                     .layers = 32,
                     .heads = 16,
                     .kv_heads = 4,
                     .head_dim = 256,
                     .qk_norm = true,
                     .rotary_dim = 64};
  DeltaNetConfig linear;
  std::vector<bool> full;                          ///< per layer: full attention instead of linear
  std::vector<std::int64_t> sections{11, 11, 10};  ///< frequencies of time, rows and columns, dealt in turn
  MoeConfig moe{.experts = 0};                     ///< in the place of every layer's MLP; no experts: none
};

/// One of either kind.
struct Qwen35Layer {
  ScopeId scope = 0;
  bool full = false;
  Projections attention;  ///< full; q is twice as wide: queries and the output's gate
  RmsNorm q_norm, k_norm;
  DeltaNet linear;
  GatedMlp mlp;
  Moe moe;
  RmsNorm input_norm, post_attention_norm;
};

struct Qwen35Text {
  const Qwen35TextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Qwen35Layer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const Qwen35TextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const Qwen35TextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const Qwen35TextConfig& g) { return make_cache(g.layers); }
inline KernelPackages kernel_packages(const Qwen35TextConfig& g) {
  const bool linear = std::find(g.full.begin(), g.full.end(), false) != g.full.end();
  return {.fla = linear, .causal_conv1d = linear};
}

/// In the order of Qwen3_5DecoderLayer.__init__. Norms multiply by 1 + weight, as Gemma's.
inline Qwen35Layer make_qwen3_5_layer(Context& c, const Qwen35TextConfig& g, std::int32_t index) {
  constexpr auto around_one = RmsNorm::Kind::gemma;
  const LlamaConfig& s = g.layers;
  Module m(c, "layers", index);
  Qwen35Layer l{.scope = m.scope, .full = g.full[static_cast<std::size_t>(index)]};
  if (l.full) {
    Module a(c, "self_attn");
    const std::int64_t queries = checked_mul(s.heads, s.head_dim), keys = checked_mul(s.kv_heads, s.head_dim);
    l.attention.scope = a.scope;
    l.attention.q = make_linear(c, "q_proj", s.hidden, checked_mul(queries, 2), s.qkv_bias);
    l.attention.k = make_linear(c, "k_proj", s.hidden, keys, s.qkv_bias);
    l.attention.v = make_linear(c, "v_proj", s.hidden, keys, s.qkv_bias);
    l.attention.out = make_linear(c, "o_proj", queries, s.hidden, s.o_bias);
    l.q_norm = make_rms_norm(c, "q_norm", s.head_dim, around_one);
    l.k_norm = make_rms_norm(c, "k_norm", s.head_dim, around_one);
  } else {
    l.linear = make_delta_net(c, g.linear);
  }
  if (g.moe.experts > 0)
    l.moe = make_moe(c, "mlp", g.moe);
  else
    l.mlp = make_gated_mlp(c, "mlp", s.hidden, s.intermediate, false, s.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", s.hidden, around_one);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", s.hidden, around_one);
  return l;
}

/// In the order of Qwen3_5TextModel.__init__.
inline Qwen35Text make_decoder(Context& c, const Qwen35TextConfig& g) {
  Qwen35Text d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_qwen3_5_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden, RmsNorm::Kind::gemma);
  d.rope = make_rope(c, "rotary_emb", g.layers.rotary_dim);
  return d;
}

/// Qwen3_5Attention.forward: half of q_proj's result gates the output.
inline Attended gated_attention(Context& c, const LlamaConfig& g, const Qwen35Layer& l, const Value& x,
                                const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const auto heads = [&](Value y) { return view(std::move(y), {batch, tokens, -1, g.head_dim}); };
  Value q, gate;
  {
    Value both = view(forward(c, l.attention.q, x), {batch, tokens, -1, checked_mul(g.head_dim, 2)});
    std::vector<Value> halves = split(std::move(both), std::array{g.head_dim, g.head_dim}, -1);
    q = std::move(halves[0]);
    gate = std::move(halves[1]);
  }
  gate = reshape(gate, {batch, tokens, -1});
  q = transpose(forward(c, l.q_norm, q), 1, 2);
  Value k = transpose(forward(c, l.k_norm, heads(forward(c, l.attention.k, x))), 1, 2);
  Value v = transpose(heads(forward(c, l.attention.v, x)), 1, 2);
  rotate_partly(q, k, positions);
  update(c, cache, k, v);
  Attended a =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = mul(a.out, unary(functions::sigmoid, gate));
  a.out = forward(c, l.attention.out, a.out);
  return a;
}

/// Qwen3_5DecoderLayer.forward.
inline Value forward(Context& c, const Qwen35TextConfig& g, const Qwen35Layer& l, const Value& x, const Value& mask,
                     const Value& padding, const CosSin& positions, CacheLayer& cache) {
  const auto attention = [&](const Value& h) -> Attended {
    if (l.full) return gated_attention(c, g.layers, l, h, mask, positions, cache);
    return {forward(c, l.linear, h, padding, cache), {}};
  };
  const auto feed_forward = [&](const Value& h) {
    return g.moe.experts > 0 ? forward(c, l.moe, h) : forward(c, l.mlp, h);
  };
  return pre_norm_layer(c, l.scope, x, l.input_norm, attention, l.post_attention_norm, feed_forward);
}

/// Qwen3_5TextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on from the cache) ->
/// normed hidden states.
inline Value forward(Context& c, const Qwen35Text& d, Value arg, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  using namespace eager;
  const Qwen35TextConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const bool counted = !position_ids;
  if (counted) position_ids = text_positions_3d(c, batch, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  const Value padding = recurrent_mask(c, attention_mask, tokens);
  Value x = embeds;
  const auto deal = [&](const Value& f) { return interleave_sections(f, g.sections); };
  const CosSin positions = mrope(c, d.rope, position_ids, deal);
  DecoderStack stack(c, counted ? position_ids : Value());
  stack.pass(positions.cos);  // linear layers get them too and do not read them
  stack.pass(positions.sin);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Qwen35Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    const TensorId first = l.full ? l.attention.first() : l.linear.first();
    x = stack({l.full ? 1 : 0, l.scope, first}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, padding, positions, entry); });
  }
  return forward(c, d.norm, x);
}
/// As …ForCausalLM calls it.
inline Value forward(Context& c, const Qwen35Text& d, Value arg, const Value& attention_mask, Cache& cache) {
  return forward(c, d, std::move(arg), Value(), attention_mask, cache);
}

}  // namespace vlmest
