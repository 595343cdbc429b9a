// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/decoder/qwen_vl_text.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/grouped_moe.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mrope.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The text model of GLM-4.5V and GLM-4.6V (transformers models/glm4v_moe, Glm4vMoeTextModel): experts beside shared
/// ones in all layers but the first few, heads that need not fill the width and turn by a part of their channels under
/// positions of three axes. Defaults: Glm4vMoeTextConfig.
struct Glm4vMoeTextConfig {
  std::int64_t vocab = 151424;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 10944;  ///< of the dense layers
  std::int64_t layers = 46;
  std::int64_t heads = 96;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 42;                     ///< hidden / heads
  std::int64_t rotary_dim = 20;                   ///< head_dim times partial_rotary_factor, even
  std::vector<std::int64_t> sections{8, 12, 12};  ///< frequencies that follow time, rows, columns, time, …
  bool qkv_bias = true;
  bool attention_dropout = false;  ///< in training mode
  GroupedMoeConfig moe{
      .experts = {.hidden = 4096, .inner = 1408, .experts = 128, .top_k = 8}, .groups = 1, .top_groups = 1};
  std::int64_t dense_layers = 1;  ///< first_k_dense_replace
  Activation activation = Activation::silu;

  bool sparse(std::int64_t layer) const { return layer >= dense_layers; }
};

struct Glm4vMoeLayer {
  ScopeId scope = 0;
  Projections attention;
  bool sparse = false;
  GroupedMoe moe;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
};

struct Glm4vMoeText {
  const Glm4vMoeTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Glm4vMoeLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline Cache make_cache(const Glm4vMoeTextConfig& g) { return empty_cache(g.layers); }

/// In the order of Glm4vMoeTextDecoderLayer.__init__.
inline Glm4vMoeLayer make_glm4v_moe_layer(Context& c, const Glm4vMoeTextConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  Glm4vMoeLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.qkv_bias, false));
  }
  l.sparse = g.sparse(index);
  if (l.sparse)
    l.moe = make_grouped_moe(c, g.moe);
  else
    l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}

/// In the order of Glm4vMoeTextModel.__init__.
inline Glm4vMoeText make_decoder(Context& c, const Glm4vMoeTextConfig& g) {
  Glm4vMoeText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_glm4v_moe_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.rotary_dim);
  return d;
}

/// [B, heads, S, head_dim] of each: heads are split as a layer has run and turned to the front when all have, which the
/// backward's order follows.
inline Qkv turned_projections(Context& c, const Projections& p, const Value& x, std::int64_t head_dim) {
  using namespace eager;
  const Shape heads{x.size(0), x.size(1), -1, head_dim};
  Qkv y;
  y.q = view(forward(c, p.q, x), heads);
  y.k = view(forward(c, p.k, x), heads);
  y.v = view(forward(c, p.v, x), heads);
  for (Value* v : {&y.q, &y.k, &y.v}) *v = transpose(std::move(*v), 1, 2);
  return y;
}

/// modeling_glm4v_moe.py, Glm4vMoeTextAttention.forward.
inline Attended self_attention(Context& c, const Glm4vMoeTextConfig& g, const Glm4vMoeLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Qkv y = turned_projections(c, l.attention, x, g.head_dim);
  apply_joint_partial_rope(c, y.q, y.k, positions);
  update(c, cache, y.k, y.v);
  Attended a =
      stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_glm4v_moe.py, Glm4vMoeTextDecoderLayer.forward.
inline Value forward(Context& c, const Glm4vMoeTextConfig& g, const Glm4vMoeLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.post_attention_norm,
      [&](const Value& x) { return l.sparse ? forward(c, l.moe, x) : forward(c, l.mlp, x); });
}

/// modeling_glm4v_moe.py, Glm4vMoeTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on
/// from the cache) -> normed hidden states.
inline Value forward(Context& c, const Glm4vMoeText& d, Value embeds, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  const Glm4vMoeTextConfig& g = *d.config;
  LanguageInputs own = own_part(c, d.scope, std::move(embeds), std::move(position_ids), attention_mask);
  InScope in(c.b, d.scope);
  const std::int64_t batch = own.embeds.size(0), tokens = own.embeds.size(1);
  if (!own.positions) own.positions = text_positions_3d(c, batch, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), own.mask);
  Value x = own.embeds;
  const auto deal = [&](Value f) { return deal_sections(std::move(f), g.sections); };
  const CosSin positions = mrope(c, d.rope, own.positions, deal);
  DecoderStack stack(c, own.positions);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Glm4vMoeLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({l.sparse ? 1 : 0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
