// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/minimax_m3_vl/experts.hpp>
#include <vlmest/family/minimax_m3_vl/indexer.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

struct MiniMaxM3Layer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  bool chooses = false, sparse = false;
  Indexer indexer;   ///< of a layer that chooses
  MiniMaxM3Moe moe;  ///< of a sparse layer
  GatedMlp mlp;      ///< of the others
  RmsNorm input_norm, post_attention_norm;
};

struct MiniMaxM3Decoder {
  const MiniMaxM3Text* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<MiniMaxM3Layer> layers;
  RmsNorm norm;
  Rope rope;
};

inline Cache make_cache(const MiniMaxM3Text& g) { return empty_cache(g.layers); }

/// In the order of MiniMaxM3VLDecoderLayer.__init__.
inline MiniMaxM3Layer make_minimax_layer(Context& c, const MiniMaxM3Text& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma;
  const auto at = static_cast<std::size_t>(index);
  Module m(c, "layers", index);
  MiniMaxM3Layer l{.scope = m.scope, .chooses = g.chooses[at], .sparse = g.sparse[at]};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, false, false));
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim, kind);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim, kind);
    if (l.chooses) l.indexer = make_indexer(c, g);
  }
  if (l.sparse)
    l.moe = make_minimax_moe(c, g);
  else
    l.mlp = make_clamped_mlp(c, "mlp", g.hidden, g.dense_intermediate);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  return l;
}

/// What the classes have no path for (MiniMaxM3VLPreTrainedModel, _supports_flash_attn; cache_utils.py: the layers of a
/// quantised cache keep no keys of an indexer).
inline void refuse_what_cannot_run(const Context& c) {
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "MiniMax-M3 has no FlashAttention path: transformers refuses it",
                "give plan.attention=sdpa or eager");
  if (c.plan.kv.kind != KvLayout::Kind::dense || c.plan.kv.dtype)
    throw Error("plan.kv", "the keys of MiniMax-M3's indexer are kept beside a plain cache alone",
                "leave kv.dtype and the layout of the cache out");
}

/// In the order of MiniMaxM3VLTextModel.__init__.
inline MiniMaxM3Decoder make_decoder(Context& c, const MiniMaxM3Text& g) {
  refuse_what_cannot_run(c);
  MiniMaxM3Decoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_minimax_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gemma);
  d.rope = make_rope(c, "rotary_emb", g.rotary_dim);
  return d;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLAttention.forward: positions[1, S] are those of every sequence. What a layer
/// chooses is a mask of its own in the place of the given one.
inline Attended self_attention(Context& c, const MiniMaxM3Text& g, const MiniMaxM3Layer& l, const Value& x,
                               const Value& given, const CosSin& positions, const Value& position_ids,
                               CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const Shape heads{batch, tokens, -1, g.head_dim};
  Value q = view(forward(c, l.attention.q, x), heads);
  q = transpose(forward(c, l.q_norm, std::move(q)), 1, 2);
  Value k = view(forward(c, l.attention.k, x), heads);
  k = transpose(forward(c, l.k_norm, std::move(k)), 1, 2);
  Value v = transpose(view(forward(c, l.attention.v, x), heads), 1, 2);
  apply_joint_partial_rope(c, q, k, positions);
  update(c, cache, k, v);
  Value mask = given, chosen;
  if (l.chooses) {
    const Value ids = expand(position_ids, {batch, -1});
    chosen = choose_blocks(c, g, l.indexer, x, positions, ids, cache);
    if (c.stack().makes_masks) mask = block_choice_mask(c, g, chosen, mask, k.size(2), q.dtype(), ids);
  }
  Attended a =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLDecoderLayer.forward.
inline Value forward(Context& c, const MiniMaxM3Text& g, const MiniMaxM3Layer& l, Value arg, const Value& mask,
                     const CosSin& positions, const Value& position_ids, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, position_ids, cache); },
      l.post_attention_norm, [&](const Value& x) { return l.sparse ? forward(c, l.moe, x) : forward(c, l.mlp, x); });
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLTextModel.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const MiniMaxM3Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const MiniMaxM3Text& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const MiniMaxM3Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({(l.chooses ? 1 : 0) + (l.sparse ? 2 : 0), l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, position_ids, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
