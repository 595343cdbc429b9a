// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask_blocks.hpp>
#include <vlmest/nn/moe.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// Step-3.7's language model (transformers 5.17 models/step3p7, Step3p7TextModel): sliding and full layers with numbers
/// of heads and rotated channels of their own, heads gated one by one, and experts beside a shared one in some layers.
/// Defaults: Step3p7TextConfig.
struct Step3p7Text {
  std::int64_t vocab = 128815;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 11264;  ///< of dense layers
  std::int64_t layers = 45;
  std::int64_t heads = 64;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 128;
  bool attention_bias = false;     ///< of all projections but the gate's
  bool mlp_bias = false;           ///< of dense layers and shared experts
  bool attention_dropout = false;  ///< in training mode
  MoeConfig moe{.hidden = 4096, .inner = 1280, .experts = 288, .top_k = 8, .looped = true};
  std::int64_t shared = 1280;             ///< share_expert_dim
  std::int64_t window = 0;                ///< sliding_window
  std::int64_t full_rotary_dim = 128;     ///< channels of a head that turn in full layers
  std::int64_t sliding_rotary_dim = 128;  ///< and in sliding ones
  std::vector<std::int64_t> layer_heads;  ///< per layer
  std::vector<bool> sliding;              ///< per layer
  std::vector<bool> sparse;               ///< per layer: experts instead of the MLP
};

/// modeling_step3p7.py, Step3p7DecoderLayer; of a sparse layer the MLP is the shared expert.
struct Step3p7Layer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  Linear gate;
  GatedMlp mlp;
  Moe moe;
  TensorId correction = none;  ///< e_score_correction_bias, [experts]
  RmsNorm input_norm, post_attention_norm;
};

struct Step3p7Decoder {
  const Step3p7Text* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Step3p7Layer> layers;
  RmsNorm norm;
  Rope full_rope, sliding_rope;
};

inline std::int64_t vocabulary(const Step3p7Text& g) { return g.vocab; }
inline std::int64_t width(const Step3p7Text& g) { return g.hidden; }
inline Cache make_cache(const Step3p7Text& g) { return empty_cache(g.layers, g.sliding, g.window); }

inline GatedMlp make_step_mlp(Context& c, const Step3p7Text& g, const char* name, std::int64_t inner) {
  GatedMlp m = make_gated_mlp(c, name, g.hidden, inner, g.mlp_bias, Activation::silu);
  m.clamped = true;
  return m;
}

/// In the order of Step3p7SparseMoeBlock.__init__: router, experts, shared expert.
inline void make_step_mixture(Context& c, const Step3p7Text& g, Step3p7Layer& l) {
  Module m(c, "mlp");
  l.moe = Moe{.config = &g.moe, .scope = m.scope};
  make_router(c, g.moe, l.moe);
  {
    InScope gate(c.b, l.moe.router_scope);
    l.correction = buffer(c, "e_score_correction_bias", {g.moe.experts}, c.dtype());
  }
  make_experts(c, g.moe, l.moe);
  l.mlp = make_step_mlp(c, g, "shared_experts", g.shared);
}

/// In the order of Step3p7DecoderLayer.__init__ and Step3p7Attention.__init__.
inline Step3p7Layer make_step_layer(Context& c, const Step3p7Text& g, std::int32_t index) {
  constexpr auto gemma = RmsNorm::Kind::gemma;
  const auto at = static_cast<std::size_t>(index);
  const std::int64_t heads = g.layer_heads[at];
  Module m(c, "layers", index);
  Step3p7Layer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, {.hidden = g.hidden,
                                       .q_width = checked_mul(heads, g.head_dim),
                                       .kv_width = checked_mul(g.kv_heads, g.head_dim),
                                       .qkv_bias = g.attention_bias,
                                       .out_bias = g.attention_bias});
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim, gemma);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim, gemma);
    l.gate = make_linear(c, "g_proj", g.hidden, heads, false);
  }
  if (g.sparse[at])
    make_step_mixture(c, g, l);
  else
    l.mlp = make_step_mlp(c, g, "mlp", g.intermediate);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, gemma);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, gemma);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of Step3p7TextModel.__init__.
inline Step3p7Decoder make_decoder(Context& c, const Step3p7Text& g) {
  Step3p7Decoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_step_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gemma);
  Module m(c, "rotary_emb");
  const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
  if (slides < g.layers) d.full_rope = make_rope_of_type(c, false, g.full_rotary_dim);
  if (slides > 0) d.sliding_rope = make_rope_of_type(c, true, g.sliding_rotary_dim);
  return d;
}

/// Step3p7Attention.forward: the result of each head times the sigmoid of a number of its own.
inline Attended self_attention(Context& c, const Step3p7Text& g, const Step3p7Layer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {x.size(0), x.size(1), -1, g.head_dim}); };
  Value q = transpose(forward(c, l.q_norm, heads(l.attention.q)), 1, 2);
  Value k = transpose(forward(c, l.k_norm, heads(l.attention.k)), 1, 2);
  Value v = transpose(heads(l.attention.v), 1, 2);
  const Value gate = forward(c, l.gate, x);
  apply_joint_partial_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  Value share = unary(functions::sigmoid, unsqueeze(gate, -1));
  a.out = mul(a.out, std::move(share));
  project_out(c, l.attention.out, a);
  return a;
}

/// Step3p7TopKRouter.forward: sigmoids in fp32, to which a buffer is added where experts are chosen.
inline Routing route(Context& c, const Step3p7Layer& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.moe.router_scope);
  Routing r;
  r.logits = linear(x, Value(c.b, l.moe.router), {});
  const Value shares = unary(functions::sigmoid, to(r.logits, DType::fp32));
  const Value scores = add(shares, Value(c.b, l.correction));
  Ranked top = topk(scores, l.moe.config->top_k, false);
  r.experts = std::move(top.indices);
  r.weights = gather_columns(shares, r.experts);
  Value total = sum(r.weights, -1, true);
  r.weights = div_(std::move(r.weights), std::move(total));
  return r;
}

/// Step3p7SparseMoeBlock.forward: the shared expert runs first; the router's logits stay to the end.
inline Value step_mixture(Context& c, const Step3p7Layer& l, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.moe.scope);
  const Shape s = x.shape();
  x = view(x, {-1, l.moe.config->hidden});
  const Value shared = forward(c, l.mlp, x);
  const Routing r = stacks::route(c, [&] { return route(c, l, x); });
  x = stacks::experts(c, l.moe, x, r);
  x = mul_scalar(x);
  x = add(x, shared);
  return view(std::move(x), s);
}

/// Step3p7DecoderLayer.forward.
inline Value forward(Context& c, const Step3p7Text& g, const Step3p7Layer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.post_attention_norm,
      [&](const Value& x) { return l.moe.config ? step_mixture(c, l, x) : forward(c, l.mlp, x); });
}

/// Step3p7TextModel.forward: embeddings[B, S, hidden] -> normed hidden states. Both masks are made whatever layers
/// there are. Which type of layer gets its rotary embedding first is the order of a Python set of strings, which
/// differs from process to process: here the full layers do.
inline Value forward(Context& c, const Step3p7Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const Step3p7Text& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  LayerMasks masks;
  masks.full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  masks.sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  Value x = embeds;
  CosSin full, sliding;
  if (d.full_rope.inv_freq != none) full = forward(c, d.full_rope, position_ids);
  if (d.sliding_rope.inv_freq != none) sliding = forward(c, d.sliding_rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Step3p7Layer& l = d.layers[i];
    const bool slides = g.sliding[i], sparse = g.sparse[i];
    CacheLayer& entry = cache.layers[i];
    // Heads tell layers apart too; of a recorded run every layer's tokens go elsewhere.
    const std::int64_t own = c.routed_rows && sparse ? static_cast<std::int64_t>(i) : 0;
    const auto kind = static_cast<int>((slides ? 1 : 0) + (sparse ? 2 : 0) + 4 * g.layer_heads[i] + (own << 20));
    x = stack({kind, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, masks.of(slides), slides ? sliding : full, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
