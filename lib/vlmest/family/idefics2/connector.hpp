// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// Idefics2's connector (transformers 5.17 models/idefics2, Idefics2Connector): a gated MLP to the language model's
/// width, then a perceiver resampler (Alayrac et al., Flamingo, arXiv:2204.14198, section 3.1.1), whose learned latents
/// read the features and themselves. Defaults: Idefics2PerceiverConfig.
struct Idefics2Projector {
  std::int64_t in = 768;              ///< vision width
  std::int64_t intermediate = 14336;  ///< the language model's
  std::int64_t out = 4096;            ///< its width, and the resampler's
  Activation activation = Activation::silu;
  std::int64_t latents = 64;  ///< resampler_n_latents
  std::int64_t depth = 3;     ///< resampler_depth
  std::int64_t heads = 16;    ///< resampler_n_heads
  std::int64_t kv_heads = 4;
  std::int64_t head_dim = 96;                          ///< resampler_head_dim
  Activation resampler_activation = Activation::silu;  ///< perceiver_config.hidden_act
  bool attention_dropout = false;                      ///< in training mode
};

struct PerceiverLayer {
  ScopeId scope = 0;
  RmsNorm latents_norm, context_norm, post_norm;
  Projections attention;
  GatedMlp mlp;
};
struct Idefics2Connector {
  const Idefics2Projector* config = nullptr;
  ScopeId scope = 0, resampler_scope = 0;
  GatedMlp projection;
  TensorId latents = none;
  std::vector<PerceiverLayer> layers;
  RmsNorm norm;
};

/// In the order of Idefics2PerceiverLayer.__init__.
inline PerceiverLayer make_perceiver_layer(Context& c, const Idefics2Projector& g, std::int32_t index) {
  Module m(c, "layers", index);
  PerceiverLayer l{.scope = m.scope};
  l.latents_norm = make_rms_norm(c, "input_latents_norm", g.out);
  l.context_norm = make_rms_norm(c, "input_context_norm", g.out);
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, {.hidden = g.out,
                                       .q_width = checked_mul(g.heads, g.head_dim),
                                       .kv_width = checked_mul(g.kv_heads, g.head_dim)});
  }
  l.post_norm = make_rms_norm(c, "post_attention_layernorm", g.out);
  l.mlp = make_gated_mlp(c, "mlp", g.out, checked_mul(g.out, 4), false, g.resampler_activation);
  return l;
}

inline Idefics2Connector make_projector(Context& c, const Idefics2Projector& g) {
  Idefics2Connector p{.config = &g, .scope = c.b.scope()};
  p.projection = make_gated_mlp(c, "modality_projection", g.in, g.intermediate, false, g.activation, "act_fn", g.out);
  Module r(c, "perceiver_resampler");
  p.resampler_scope = r.scope;
  p.latents = parameter(c, "latents", {g.latents, g.out});
  p.layers = make_layers(g.depth, [&](std::int32_t i) { return make_perceiver_layer(c, g, i); });
  p.norm = make_rms_norm(c, "norm", g.out);
  return p;
}

/// Idefics2PerceiverAttention.forward: latents[N, Q, width] over context[N, T, width] and themselves.
inline Attended perceiver_attention(Context& c, const Idefics2Projector& g, const PerceiverLayer& l,
                                    const Value& latents, const Value& context, const Value& mask) {
  InScope in(c.b, l.attention.scope);
  const Value both = eager::cat(context, latents, -2);
  Qkv y;
  y.q = forward(c, l.attention.q, latents);
  y.k = forward(c, l.attention.k, both);
  y.v = forward(c, l.attention.v, both);
  split_heads(y, g.head_dim);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// Idefics2PerceiverLayer.forward. The normed context is a variable of the layer.
inline Value forward(Context& c, const Idefics2Projector& g, const PerceiverLayer& l, const Value& latents,
                     const Value& context, const Value& mask) {
  Value normed;
  return pre_norm_layer(
      c, l.scope, latents, l.latents_norm,
      [&](const Value& x) {
        normed = forward(c, l.context_norm, context);
        return perceiver_attention(c, g, l, x, normed, mask);
      },
      l.post_norm, [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// Idefics2PerceiverResampler.forward: context[N, T, width], of which real bool[N, T] tells the padding, where there is
/// any -> [N, latents, width].
inline Value resample(Context& c, const Idefics2Connector& p, const Value& context, const Value& real, bool padded) {
  using namespace eager;
  const Idefics2Projector& g = *p.config;
  InScope in(c.b, p.resampler_scope);
  const std::int64_t n = context.size(0);
  const Value latents = expand(unsqueeze(Value(c.b, p.latents), 0), {n, g.latents, g.out});
  Value own, mask;  // the latents see each other
  if (c.stack().makes_masks) {
    own = fill(c.b, "ones", {n, g.latents}, DType::boolean);
    mask = cat(real, own, -1);
    mask = bidirectional_mask(c, mask, padded, g.latents);
  }
  Value x = latents;
  LayerRepeater repeat(c.b, false);
  for (const PerceiverLayer& l : p.layers)
    x = repeat({0, l.scope, l.latents_norm.weight}, x, {},
               [&](const Value& h) { return forward(c, g, l, h, context, mask); });
  return forward(c, p.norm, x);
}

/// Idefics2Connector.forward.
inline Value forward(Context& c, const Idefics2Connector& p, const Value& features, const Value& real, bool padded) {
  InScope in(c.b, p.scope);
  const Value x = forward(c, p.projection, features);
  return resample(c, p, x, real, padded);
}

}  // namespace vlmest
