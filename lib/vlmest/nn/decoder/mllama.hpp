// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The language model of Llama 3.2 Vision (transformers models/mllama, MllamaTextModel): Llama's layers, some replaced
/// by gated cross-attention over the image features; all three projections run before heads are split
/// (MllamaTextSelfAttention.forward). Its embedding has eight rows more than the vocabulary.
struct MllamaText {
  LlamaConfig base{.vocab = 128256,
                   .hidden = 4096,
                   .intermediate = 14336,
                   .layers = 40,
                   .heads = 32,
                   .kv_heads = 8,
                   .head_dim = 128,
                   .project_first = true};
  std::vector<bool> cross;  ///< per layer: cross-attention

  static constexpr std::int64_t extra_embeddings = 8;
};

struct MllamaCrossLayer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  RmsNorm input_norm, post_attention_norm;
  TensorId attention_gate = none, mlp_gate = none;
  GatedMlp mlp;
};

struct MllamaDecoder {
  const MllamaText* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<std::variant<LlamaLayer, MllamaCrossLayer>> layers;
  RmsNorm norm;
  Rope rope;
};

/// What the cross-attention layers see: states[B * pictures * tiles, tokens, hidden] (empty where the cache holds their
/// keys and values already), an additive mask[B, 1, S, L], and [B, 1, S, 1] with 0 for rows that see no picture.
struct CrossInputs {
  Value states;
  Value mask;
  Value rows;
};

/// The order of MllamaCrossAttentionDecoderLayer.__init__.
inline MllamaCrossLayer make_mllama_cross_layer(Context& c, const LlamaConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  MllamaCrossLayer l{.scope = m.scope};
  {
    Module a(c, "cross_attn");
    l.attention = make_projections(c, grouped_query(g, false, false));
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim);
  }
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.attention_gate = parameter(c, "cross_attn_attn_gate", {1});
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  l.mlp_gate = parameter(c, "cross_attn_mlp_gate", {1});
  return l;
}

inline bool is_cross(const MllamaText& g, std::size_t layer) { return layer < g.cross.size() && g.cross[layer]; }

inline MllamaDecoder make_decoder(Context& c, const MllamaText& g) {
  MllamaDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens =
      make_embedding(c, "embed_tokens", checked_add(g.base.vocab, MllamaText::extra_embeddings), g.base.hidden);
  for (std::int64_t i = 0; i < g.base.layers; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (is_cross(g, static_cast<std::size_t>(i)))
      d.layers.emplace_back(make_mllama_cross_layer(c, g.base, index));
    else
      d.layers.emplace_back(make_llama_layer(c, g.base, index));
  }
  d.norm = make_rms_norm(c, "norm", g.base.hidden);
  d.rope = make_rope(c, "rotary_emb", g.base.head_dim);
  return d;
}

inline Cache make_cache(const MllamaText& g) {
  Cache r = make_cache(g.base);
  for (std::size_t i = 0; i < r.layers.size(); ++i) r.layers[i].fixed = is_cross(g, i);
  return r;
}

/// modeling_mllama.py, MllamaTextCrossAttention.forward: keys and values are made once and stay in the cache.
inline Attended cross_attention(Context& c, const LlamaConfig& g, const MllamaCrossLayer& l, const Value& x,
                                const CrossInputs& cross, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Value q = split_heads(forward(c, l.attention.q, x), g.head_dim);
  q = forward(c, l.q_norm, q);
  Value k, v;
  if (cross.states) {
    const std::int64_t batch = x.size(0);
    k = forward(c, l.attention.k, cross.states);
    v = forward(c, l.attention.v, cross.states);
    k = transpose(view(k, {batch, -1, g.kv_heads, g.head_dim}), 1, 2);
    v = transpose(view(v, {batch, -1, g.kv_heads, g.head_dim}), 1, 2);
    k = forward(c, l.k_norm, k);
    update(c, cache, k, v);
  } else {
    k = cache.keys;
    v = cache.values;
  }
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = cross.mask, .causal = c.stack().makes_masks});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_mllama.py, MllamaCrossAttentionDecoderLayer.forward.
inline Value forward(Context& c, const LlamaConfig& g, const MllamaCrossLayer& l, const Value& arg,
                     const CrossInputs& cross, CacheLayer& cache) {
  using namespace eager;
  Value x = arg;
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = cross_attention(c, g, l, x, cross, cache);  // the weights stay to the end
  x = std::move(attended.out);
  Value gated = stacks::tanh_gate(c, l.attention_gate, x);
  x = add(residual, std::move(gated));
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  x = forward(c, l.mlp, x);
  if (cross.rows) x = mul(select(cross.rows, 1, 0), x);
  gated = stacks::tanh_gate(c, l.mlp_gate, x);
  x = add(residual, std::move(gated));
  return x;
}

/// modeling_mllama.py, MllamaTextModel.forward: token ids[B, S] -> normed hidden states. Cross-attention layers are
/// left out where there are neither image features nor cached ones.
inline Value forward(Context& c, const MllamaDecoder& d, const Value& ids, const Value& attention_mask,
                     const CrossInputs& cross, Cache& cache) {
  using namespace eager;
  const LlamaConfig& g = d.config->base;
  InScope in(c.b, d.scope);
  const Value embeds = embed(c, d, ids);
  const std::int64_t tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const MaskShape shape{.batch = embeds.size(0), .q_len = tokens, .kv_len = tokens + cache.layers.front().seen};
  const Value mask = causal_mask(c, shape, attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  // The two kinds of layer advance their entries by different lengths. Each gets the other's arguments too.
  DecoderStack self(c, position_ids), other(c, position_ids);
  for (const Value* v : {&cross.states, &cross.mask, &cross.rows}) self.pass(*v);
  for (const Value* v : {&mask, &positions.cos, &positions.sin}) other.pass(*v);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    CacheLayer& entry = cache.layers[i];
    if (const auto* l = std::get_if<LlamaLayer>(&d.layers[i])) {
      x = self({0, l->scope, l->attention.first()}, x, entry,
               [&](const Value& h) { return forward(c, g, *l, h, mask, positions, entry); });
      continue;
    }
    const auto& l = std::get<MllamaCrossLayer>(d.layers[i]);
    if (!cross.states && !entry.keys) continue;
    x = other({1, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, cross, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
