// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/mrope.hpp>

namespace vlmest {

/// HunYuan-VL's text model (transformers models/hunyuan_vl, HunYuanVLTextModel): Llama's layers with norms of each head
/// of q and k behind the rotation, under positions of three axes or four. Defaults: HunYuanVLTextConfig.
struct HunYuanTextConfig {
  LlamaConfig layers{.vocab = 290943, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};
  std::vector<std::int64_t> sections{16, 16, 16, 16};  ///< frequencies of each axis: as many axes as entries
  std::optional<std::int64_t> dynamic;                 ///< the length that dynamic frequencies are for
};

struct HunYuanLayer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
};

struct HunYuanText {
  const HunYuanTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<HunYuanLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const HunYuanTextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const HunYuanTextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const HunYuanTextConfig& g) { return empty_cache(g.layers.layers); }

/// In the order of HunYuanVLDenseV1DecoderLayer.__init__.
inline HunYuanLayer make_hunyuan_layer(Context& c, const LlamaConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  HunYuanLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.qkv_bias, g.o_bias));
    l.q_norm = make_rms_norm(c, "query_layernorm", g.head_dim);
    l.k_norm = make_rms_norm(c, "key_layernorm", g.head_dim);
  }
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}

/// In the order of HunYuanVLTextModel.__init__.
inline HunYuanText make_decoder(Context& c, const HunYuanTextConfig& g) {
  HunYuanText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_hunyuan_layer(c, g.layers, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

/// modeling_hunyuan_vl.py, HunYuanVLRotaryEmbedding.recomposition_frequencies: freq[axes, B, S, n] twice in a row, then
/// section i of two times its length from axis i -> [B, S, 2 n].
inline Value deal_axes(Value arg, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  Value freq = std::move(arg);
  freq = cat(freq, freq, -1);
  std::vector<std::int64_t> wide;
  for (const std::int64_t n : sections) wide.push_back(2 * n);
  std::vector<Value> parts = split(freq, wide, -1);
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = select(std::move(parts[i]), 0, static_cast<std::int64_t>(i));
  freq = cat(parts, -1);
  return freq;
}

/// modeling_hunyuan_vl.py, apply_rotary_pos_emb: in fp32, both cast back when both have turned.
inline void apply_wide_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const DType t = q.dtype();
    Value wide_q = to(q, DType::fp32);
    Value wide_k = to(k, DType::fp32);
    const Value cos = to(unsqueeze(e.cos, 1), DType::fp32);
    const Value sin = to(unsqueeze(e.sin, 1), DType::fp32);
    const Value rotated_q = rotate(wide_q, cos, sin);
    const Value rotated_k = rotate(wide_k, cos, sin);
    Value new_q = to(rotated_q, t);
    Value new_k = to(rotated_k, t);
    q = std::move(new_q);
    k = std::move(new_k);
  });
}

/// modeling_hunyuan_vl.py, HunYuanVLDenseV1Attention.forward.
inline Attended self_attention(Context& c, const LlamaConfig& g, const HunYuanLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  InScope in(c.b, l.attention.scope);
  Qkv y = project_heads(c, l.attention, x, g.head_dim);
  apply_wide_rope(c, y.q, y.k, positions);
  y.q = forward(c, l.q_norm, y.q);
  y.k = forward(c, l.k_norm, y.k);
  update(c, cache, y.k, y.v);
  Attended a =
      stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_hunyuan_vl.py, HunYuanVLDenseV1DecoderLayer.forward.
inline Value forward(Context& c, const LlamaConfig& g, const HunYuanLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.post_attention_norm,
      [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// modeling_hunyuan_vl.py, HunYuanVLTextModel.forward: embeddings[B, S, hidden] and positions[axes, B, S] (none:
/// counted on from the cache) -> normed hidden states.
inline Value forward(Context& c, const HunYuanText& d, Value embeds, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  const LlamaConfig& g = d.config->layers;
  LanguageInputs own = own_part(c, d.scope, std::move(embeds), std::move(position_ids), attention_mask);
  InScope in(c.b, d.scope);
  const std::int64_t batch = own.embeds.size(0), tokens = own.embeds.size(1);
  const auto axes = static_cast<std::int64_t>(d.config->sections.size());
  if (!own.positions) own.positions = text_positions_on(c, axes, batch, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), own.mask);
  Value x = own.embeds;
  if (d.config->dynamic) {
    if (cache.layers.front().seen + tokens > *d.config->dynamic)
      throw Error("plan.text",
                  "more tokens than max_position_embeddings: dynamic frequencies are then worked out anew, "
                  "which is not modelled here",
                  "give at most " + std::to_string(*d.config->dynamic) + " tokens");
    check_dynamic_length(c, d.rope, own.positions);
  }
  const CosSin positions =
      mrope(c, d.rope, own.positions, [&](Value f) { return deal_axes(std::move(f), d.config->sections); });
  DecoderStack stack(c, {});
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const HunYuanLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
