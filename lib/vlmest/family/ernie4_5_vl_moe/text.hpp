// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/family/ernie4_5_vl_moe/experts.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mrope.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The language model of ERNIE 4.5 VL (transformers models/ernie4_5_vl_moe, Ernie4_5_VLMoeTextModel): experts by
/// modality, and pairs of neighbours that turn in fp32 by rows and columns in turns, then by time. Defaults:
/// Ernie4_5_VLMoeTextConfig.
struct Ernie4_5TextConfig {
  std::int64_t vocab = 103424;
  std::int64_t hidden = 2560;
  std::int64_t intermediate = 12288;  ///< of the dense layers
  std::int64_t layers = 28;
  std::int64_t heads = 20;
  std::int64_t kv_heads = 4;
  std::int64_t head_dim = 128;
  std::vector<std::int64_t> sections{22, 22, 20};  ///< frequencies that follow rows, columns, time
  bool bias = false;                               ///< use_bias
  ModalityMoeConfig moe;
  std::vector<bool> sparse;  ///< mlp_layer_types, per layer
  Activation activation = Activation::silu;
};

struct Ernie4_5TextLayer {
  ScopeId scope = 0;
  Projections attention;
  bool sparse = false;
  ModalityMoe moe;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
};

struct Ernie4_5Text {
  const Ernie4_5TextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Ernie4_5TextLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline Cache make_cache(const Ernie4_5TextConfig& g) { return empty_cache(g.layers); }

/// In the order of Ernie4_5_VLMoeDecoderLayer.__init__.
inline Ernie4_5TextLayer make_ernie_layer(Context& c, const Ernie4_5TextConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  Ernie4_5TextLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.bias, g.bias));
  }
  l.sparse = g.sparse[static_cast<std::size_t>(index)];
  if (l.sparse)
    l.moe = make_modality_moe(c, g.moe);
  else
    l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, g.bias, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}

/// In the order of Ernie4_5_VLMoeTextModel.__init__.
inline Ernie4_5Text make_decoder(Context& c, const Ernie4_5TextConfig& g) {
  Ernie4_5Text d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_ernie_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.head_dim);
  return d;
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeTextRotaryEmbedding.recomposition_frequencies: freq[3, B, S, n] -> [B, S,
/// 2 n], each entry twice.
inline Value alternate_axes(const Value& freq, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  std::vector<Value> axes = split(freq, sections, -1);
  for (std::size_t i = 0; i < axes.size(); ++i)
    axes[i] = select(std::move(axes[i]), 0, static_cast<std::int64_t>((i + 1) % 3));
  std::array<Value, 2> in_turns{axes[0], axes[1]};
  const Value places = flatten(stack(in_turns, -1), -2, -1);
  const Value all = cat(places, axes[2], -1);
  return repeat_each(all);
}

/// modeling_ernie4_5_vl_moe.py, apply_rotary_pos_emb, of q or k [B, H, S, D]; cos, sin[B, 1, S, D] in fp32.
inline Value turn_pairs_wide(const Value& x, const Value& cos, const Value& sin) {
  using namespace eager;
  const auto rotated_pairs = [](const Value& v) {
    const Value x1 = slice(v, -1, 0, v.size(-1), 2), x2 = slice(v, -1, 1, v.size(-1), 2);
    std::array<Value, 2> pair{neg(x2), x1};
    return flatten(stack(pair, -1), -2, -1);
  };
  Value wide = to(x, DType::fp32);
  Value a = mul(std::move(wide), cos);
  Value turned = rotated_pairs(x);
  turned = to(std::move(turned), DType::fp32);
  Value b = mul(std::move(turned), sin);
  return add(std::move(a), std::move(b));
}
inline void turn_pairs_in_fp32(Context& c, Value& q, Value& k, const CosSin& e) {
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const DType t = q.dtype();
    const Value cos = eager::unsqueeze(e.cos, 1), sin = eager::unsqueeze(e.sin, 1);
    const Value turned_q = turn_pairs_wide(q, cos, sin);
    const Value turned_k = turn_pairs_wide(k, cos, sin);
    Value narrow_q = eager::to(turned_q, t);
    Value narrow_k = eager::to(turned_k, t);
    q = std::move(narrow_q);
    k = std::move(narrow_k);
  });
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeTextAttention.forward.
inline Attended self_attention(Context& c, const Ernie4_5TextConfig& g, const Ernie4_5TextLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  InScope in(c.b, l.attention.scope);
  Qkv y = project_heads(c, l.attention, x, g.head_dim);
  turn_pairs_in_fp32(c, y.q, y.k, positions);
  update(c, cache, y.k, y.v);
  Attended a = stacks::attend(c, {y.q, y.k, y.v, mask, true});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeDecoderLayer.forward: one variable holds what attention and experts
/// return beside their result.
inline Value forward(Context& c, const Ernie4_5TextConfig& g, const Ernie4_5TextLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, const SeenTokens& seen, CacheLayer& cache) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = self_attention(c, g, l, x, mask, positions, cache);
  x = std::move(attended.out);
  Value beside = std::move(attended.weights);
  x = add(x, residual);
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  if (l.sparse) {
    RoutedStates y = forward(c, l.moe, x, seen);
    x = std::move(y.states);
    beside = std::move(y.logits);
  } else {
    x = forward(c, l.mlp, x);
  }
  return add(x, residual);
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none:
/// counted on from the cache) -> normed hidden states.
inline Value forward(Context& c, const Ernie4_5Text& d, Value arg, Value position_ids, const Value& attention_mask,
                     Cache& cache, const SeenTokens& seen = {}) {
  const Ernie4_5TextConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  if (!position_ids) position_ids = text_positions_3d(c, batch, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  const auto deal = [&](const Value& f) { return alternate_axes(f, g.sections); };
  const CosSin positions = mrope(c, d.rope, position_ids, deal, DType::fp32);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Ernie4_5TextLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({l.sparse ? 1 : 0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, seen, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
