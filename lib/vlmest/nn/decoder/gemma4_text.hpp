// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/gemma4_attention.hpp>
#include <vlmest/nn/gemma4_experts.hpp>
#include <vlmest/nn/mask_blocks.hpp>
#include <vlmest/nn/mlp.hpp>

namespace vlmest {

/// modeling_gemma4.py, Gemma4TextDecoderLayer.
struct Gemma4Layer {
  ScopeId scope = 0;
  Gemma4Attention attention;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;
  TensorId scalar = none;  ///< a buffer that the layer's result is multiplied by
  ScopeId activation_scope = 0;
  Linear per_layer_gate, per_layer_projection;
  RmsNorm per_layer_norm;
  Gemma4Experts moe;
};

struct Gemma4Text {
  const Gemma4TextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  TensorId embed_scale = none;
  std::vector<Gemma4Layer> layers;
  RmsNorm norm;
  Rope full_rope, sliding_rope;
  Embedding embed_per_layer;
  TensorId per_layer_scale = none;
  Linear per_layer_projection;
  RmsNorm per_layer_norm;
};

/// In the order of Gemma4TextDecoderLayer.__init__.
inline Gemma4Layer make_gemma4_layer(Context& c, const Gemma4TextConfig& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "layers", index);
  Gemma4Layer l{.scope = m.scope};
  l.attention = make_gemma4_attention(c, g, index);
  const bool wide = g.double_wide && g.shares(index) && g.first_shared() > 0;
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, checked_mul(g.intermediate, wide ? 2 : 1), false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  l.pre_feedforward_norm = make_rms_norm(c, "pre_feedforward_layernorm", g.hidden, kind);
  l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden, kind);
  l.scalar = buffer(c, "layer_scalar", {1}, c.dtype());
  if (g.per_layer > 0) {
    l.activation_scope = c.b.child("act_fn");
    l.per_layer_gate = make_linear(c, "per_layer_input_gate", g.hidden, g.per_layer, false);
    l.per_layer_projection = make_linear(c, "per_layer_projection", g.per_layer, g.hidden, false);
    l.per_layer_norm = make_rms_norm(c, "post_per_layer_input_norm", g.hidden, kind);
  }
  if (g.moe.experts > 0) l.moe = make_gemma4_experts(c, g.moe);
  return l;
}

/// Gemma4TextScaledWordEmbedding.__init__; returns the buffer of its factor.
inline Embedding make_scaled_embedding(Context& c, const char* name, std::int64_t rows, std::int64_t width,
                                       TensorId& scale) {
  const Embedding e = make_embedding(c, name, rows, width);
  InScope in(c.b, e.scope);
  scale = buffer(c, "embed_scale", Shape{}, c.dtype());
  return e;
}

/// In the order of Gemma4TextModel.__init__.
inline Gemma4Text make_decoder(Context& c, const Gemma4TextConfig& g) {
  Gemma4Text d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_scaled_embedding(c, "embed_tokens", g.vocab, g.hidden, d.embed_scale);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_gemma4_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gemma4);
  {
    Module m(c, "rotary_emb");
    const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
    if (slides < g.layers) d.full_rope = make_rope_of_type(c, false, g.full_head_dim);
    if (slides > 0) d.sliding_rope = make_rope_of_type(c, true, g.head_dim);
  }
  if (g.per_layer > 0) {
    const std::int64_t packed = checked_mul(g.layers, g.per_layer);
    d.embed_per_layer =
        make_scaled_embedding(c, "embed_tokens_per_layer", g.per_layer_vocab, packed, d.per_layer_scale);
    d.per_layer_projection = make_linear(c, "per_layer_model_projection", g.hidden, packed, false);
    d.per_layer_norm = make_rms_norm(c, "per_layer_projection_norm", g.per_layer, RmsNorm::Kind::gemma4);
  }
  return d;
}

/// Layers that share keys and values have no entry (cache_utils.py, get_layer_types_and_kwargs).
inline Cache make_cache(const Gemma4TextConfig& g) {
  Cache r;
  for (std::int64_t i = 0; i < g.first_shared(); ++i) {
    r.layers.emplace_back();
    if (g.slides(i)) r.layers.back().window = g.window;
  }
  return r;
}

/// Gemma4TextScaledWordEmbedding.forward.
inline Value scaled_rows(Context& c, const Embedding& e, TensorId scale, const Value& ids) {
  Value rows = forward(c, e, ids);
  InScope in(c.b, e.scope);
  return eager::mul(std::move(rows), Value(c.b, scale));
}
inline Value embed(Context& c, const Gemma4Text& d, const Value& input_ids) {
  Value rows = scaled_rows(c, d.embed_tokens, d.embed_scale, input_ids);
  return input_embedding(c, std::move(rows));
}

/// Gemma4TextModel.get_per_layer_inputs: what each layer gets of each token's identity, [B, S, layers, width].
inline Value per_layer_inputs(Context& c, const Gemma4Text& d, const Value& input_ids) {
  const Gemma4TextConfig& g = *d.config;
  Value rows = scaled_rows(c, d.embed_per_layer, d.per_layer_scale, input_ids);
  return eager::reshape(std::move(rows), {input_ids.size(0), input_ids.size(1), g.layers, g.per_layer});
}

/// Gemma4TextModel.project_per_layer_inputs: and with it of the token's embedding.
inline Value project_per_layer_inputs(Context& c, const Gemma4Text& d, const Value& embeds, const Value& of_tokens) {
  using namespace eager;
  InScope in(c.b, d.scope);
  Value x = mul_scalar(forward(c, d.per_layer_projection, embeds));
  x = reshape(x, of_tokens.shape());
  x = forward(c, d.per_layer_norm, x);
  return mul_scalar(add(x, of_tokens));
}

/// Gemma4TextDecoderLayer.forward; `own` is the layer's part of the inputs per layer, empty where there are none.
inline Value forward(Context& c, const Gemma4TextConfig& g, const Gemma4Layer& l, Value arg, const Value& own,
                     const Value& mask, const CosSin& positions, CacheLayer& cache, LentKeys& lent) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = forward(c, g, l.attention, x, mask, positions, cache, lent);
  x = std::move(attended.out);
  x = forward(c, l.post_attention_norm, x);
  x = add(residual, x);
  residual = x;
  x = forward(c, l.pre_feedforward_norm, x);
  x = forward(c, l.mlp, x);
  Gemma4Mixture mixture;
  if (g.moe.experts > 0) x = mix(c, l.moe, x, residual, mixture, attended.weights);
  x = forward(c, l.post_feedforward_norm, x);
  x = add(residual, x);
  if (own) {
    residual = x;
    x = forward(c, l.per_layer_gate, x);
    {
      InScope a(c.b, l.activation_scope);
      x = activate(c, g.activation, x);
    }
    x = mul(x, own);
    x = forward(c, l.per_layer_projection, x);
    x = forward(c, l.per_layer_norm, x);
    x = add(residual, x);
  }
  return mul_(std::move(x), Value(c.b, l.scalar));
}

/// Gemma4TextModel.forward from the masks on: embeddings[B, S, hidden], what the layers get beside them (or nothing),
/// positions[1, S] -> normed hidden states. Which type of layer gets its rotary embedding first is the order of a
/// Python set of strings, which differs from process to process: here the full layers do.
inline Value forward(Context& c, const Gemma4Text& d, const Value& embeds, const Value& per_layer,
                     const Value& position_ids, const LayerMasks& masks, Cache& cache) {
  using namespace eager;
  const Gemma4TextConfig& g = *d.config;
  InScope in(c.b, d.scope);
  Value x = embeds;
  CosSin full, sliding;
  if (d.full_rope.inv_freq != none) full = forward(c, d.full_rope, position_ids);
  if (d.sliding_rope.inv_freq != none) sliding = forward(c, d.sliding_rope, position_ids);
  LentKeys lent;
  CacheLayer unused;
  DecoderStack stack(c, position_ids);
  // What hands gradients to its own inputs is no copy of another layer.
  const bool alike = !c.b.grad_enabled() || (!per_layer && g.shared == 0);
  Value own;
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Gemma4Layer& l = d.layers[i];
    const Gemma4Attention& a = l.attention;
    const int kind = alike ? (a.slides ? 1 : 0) + (a.shares ? 2 : 0) + (a.lends ? 4 : 0) : 8 + static_cast<int>(i);
    CacheLayer& entry = a.shares ? unused : cache.layers[i];
    if (per_layer) own = select(per_layer, 2, static_cast<std::int64_t>(i));
    LayerRepeater::Layer place{kind, l.scope, a.q.weight};
    place.lends = a.lends && g.shared > 0;
    x = stack(
        place, x, entry,
        [&, again = false](const Value& h) mutable {
          LentKeys apart = again ? lent : LentKeys{};  // a checkpointed layer's second run changes nothing of the first
          LentKeys& keys = again ? apart : lent;
          again = true;
          return forward(c, g, l, h, own, masks.of(a.slides), a.slides ? sliding : full, entry, keys);
        },
        own);
  }
  return forward(c, d.norm, x);
}

/// create_causal_mask and create_sliding_window_causal_mask.
inline LayerMasks causal_masks(Context& c, const Gemma4TextConfig& g, const Value& attention_mask, std::int64_t batch,
                               std::int64_t tokens, const Cache& cache) {
  LayerMasks r;
  r.full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  r.sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  return r;
}

/// Throws Error for attention that has no path for heads of this width.
inline void check_wide_heads(const Context& c) {
  if (!c.stack().attends_to_wide_shared_heads)
    throw Error("plan.runtime", "kernels that fuse Gemma 4's attention, with heads of 512 channels, are not modelled",
                "leave plan.runtime out");
  if (c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention",
                "FlashAttention-2, which takes heads of at most 256 channels, is not modelled for Gemma 4",
                "give plan.attention=sdpa");
}

}  // namespace vlmest
