// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <vlmest/family/phi4_multimodal/audio_config.hpp>
#include <vlmest/graph/eager/depthwise.hpp>
#include <vlmest/nn/audio/conv.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>

/// A layer of Phi-4-multimodal's conformer (transformers 5.17 modeling_phi4_multimodal.py,
/// Phi4MultimodalAudioConformerEncoderLayer): half a feed-forward, attention, a convolution, the other half.
namespace vlmest {

/// Phi4MultimodalAudioMLP.
struct Phi4AudioMlp {
  ScopeId scope = 0, activation_scope = 0;
  LayerNorm norm;
  Linear gate_up, down;
};

/// Phi4MultimodalAudioConvModule with its Phi4MultimodalAudioGluPointWiseConv and
/// Phi4MultimodalAudioDepthWiseSeparableConv1d.
struct Phi4AudioConv {
  ScopeId scope = 0, gate_scope = 0, gate_activation_scope = 0, separable_scope = 0, activation_scope = 0;
  LayerNorm norm;
  Conv1d gate, depthwise, pointwise, out;
  TensorId b1 = none, b2 = none;
};

struct Phi4AudioLayer {
  ScopeId scope = 0;
  Phi4AudioMlp before, after;
  Projections attention;
  Phi4AudioConv conv;
  LayerNorm norm_attention, norm;
};

inline Phi4AudioMlp make_phi4_audio_mlp(Context& c, const char* name, const Phi4Audio& g) {
  Module m(c, name);
  Phi4AudioMlp r{.scope = m.scope};
  r.norm = make_layer_norm(c, "layer_norm", g.hidden);
  r.activation_scope = c.b.child("act_fn");
  r.gate_up = make_linear(c, "gate_up_proj", g.hidden, checked_mul(g.intermediate, 2), true);
  r.down = make_linear(c, "down_proj", g.intermediate, g.hidden, true);
  return r;
}

inline Phi4AudioConv make_phi4_audio_conv(Context& c, const Phi4Audio& g) {
  Module m(c, "conv");
  Phi4AudioConv r{.scope = m.scope};
  r.norm = make_layer_norm(c, "layer_norm", g.hidden);
  {
    Module glu(c, "glu");
    r.gate_scope = glu.scope;
    r.gate = make_conv1d(c, "ext_pw_conv_1d", g.hidden, checked_mul(g.hidden, 2), 1, 1);
    r.gate_activation_scope = c.b.child("glu_act");
    r.b1 = parameter(c, "b1", {1, g.hidden, 1});
    r.b2 = parameter(c, "b2", {1, g.hidden, 1});
  }
  {
    Module separable(c, "dw_sep_conv_1d");
    r.separable_scope = separable.scope;
    r.depthwise = make_conv1d(c, "dw_conv", 1, checked_mul(g.hidden, g.multiplier), g.taps, 1);
    r.pointwise = make_conv1d(c, "pw_conv", checked_mul(g.hidden, g.multiplier), g.hidden, 1, 1);
  }
  r.activation_scope = c.b.child("act");
  r.out = make_conv1d(c, "ext_pw_conv_1d", g.hidden, g.hidden, 1, 1);
  return r;
}

/// Phi4MultimodalAudioAttention.__init__.
inline Projections make_phi4_audio_attention(Context& c, const Phi4Audio& g) {
  Module m(c, "self_attn");
  const std::int64_t inner = checked_mul(g.heads, g.head_dim);
  Projections p{.scope = m.scope};
  p.q = make_linear(c, "q_proj", g.hidden, inner, true);
  p.k = make_linear(c, "k_proj", g.hidden, inner, true);
  p.v = make_linear(c, "v_proj", g.hidden, inner, true);
  p.out = make_linear(c, "o_proj", inner, g.hidden, true);
  return p;
}

inline Phi4AudioLayer make_phi4_audio_layer(Context& c, const Phi4Audio& g, std::int32_t index) {
  Module m(c, "encoders", index);
  Phi4AudioLayer l{.scope = m.scope};
  l.before = make_phi4_audio_mlp(c, "feed_forward_in", g);
  l.attention = make_phi4_audio_attention(c, g);
  l.conv = make_phi4_audio_conv(c, g);
  l.after = make_phi4_audio_mlp(c, "feed_forward_out", g);
  l.norm_attention = make_layer_norm(c, "layer_norm_att", g.hidden);
  l.norm = make_layer_norm(c, "layer_norm", g.hidden);
  return l;
}

inline Value activated(Context& c, ScopeId scope, Activation a, Value x) {
  InScope in(c.b, scope);
  return activate(c, a, std::move(x));
}

/// Phi4MultimodalAudioMLP.forward: the gate, a view of both halves, is a variable to the end.
inline Value forward(Context& c, const Phi4Audio& g, const Phi4AudioMlp& m, const Value& arg) {
  using namespace eager;
  InScope in(c.b, m.scope);
  Value x = forward(c, m.norm, arg);
  Value up = forward(c, m.gate_up, x);
  std::vector<Value> halves = split(std::move(up), std::array{g.intermediate, g.intermediate}, -1);
  const Value gate = std::move(halves[1]);
  up = std::move(halves[0]);
  up = mul(up, activated(c, m.activation_scope, g.activation, gate));
  return forward(c, m.down, up);
}

/// Phi4MultimodalAudioAttention.forward.
inline Value phi4_audio_attention(Context& c, const Phi4Audio& g, const Projections& p, const Value& x,
                                  const Value& mask) {
  InScope in(c.b, p.scope);
  const Qkv y = project_heads(c, p, x, g.head_dim);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .causal = true});
  project_out(c, p.out, a);
  return std::move(a.out);
}

/// Phi4MultimodalAudioGluPointWiseConv.forward: x[N, T, C] -> the same shape, a view.
inline Value gated(Context& c, const Phi4Audio& g, const Phi4AudioConv& m, const Value& arg) {
  using namespace eager;
  InScope in(c.b, m.gate_scope);
  const Value x = forward(c, m.gate, permute(arg, {0, 2, 1}));
  Value out = add(slice(x, 1, 0, g.hidden), Value(c.b, m.b1));
  {
    Value other = add(slice(x, 1, g.hidden, 2 * g.hidden), Value(c.b, m.b2));
    other = activated(c, m.gate_activation_scope, g.gate_activation, std::move(other));
    out = mul(out, std::move(other));
  }
  return permute(out, {0, 2, 1});
}

/// Phi4MultimodalAudioConvModule.forward: zeros stand at both ends of the convolution over time, and what those behind
/// give is cut off, so that no state sees a later one.
inline Value forward(Context& c, const Phi4Audio& g, const Phi4AudioConv& m, const Value& arg) {
  using namespace eager;
  InScope in(c.b, m.scope);
  Value x;
  {
    const Value normed = forward(c, m.norm, arg);
    x = gated(c, g, m, normed);
  }
  {
    InScope separable(c.b, m.separable_scope);
    const Value rows = permute(x, {0, 2, 1});
    Value each;
    {
      InScope depthwise(c.b, m.depthwise.scope);
      each = depthwise_conv1d(rows, Value(c.b, m.depthwise.weight), Value(c.b, m.depthwise.bias), g.taps - 1);
    }
    x = forward(c, m.pointwise, std::move(each));
  }
  x = slice(x, 2, 0, x.size(2) - (g.taps - 1));
  x = activated(c, m.activation_scope, g.conv_activation, x);
  x = forward(c, m.out, x);
  return permute(x, {0, 2, 1});
}

/// Phi4MultimodalAudioConformerEncoderLayer.forward.
inline Value forward(Context& c, const Phi4Audio& g, const Phi4AudioLayer& l, const Value& arg, const Value& mask) {
  using namespace eager;
  InScope in(c.b, l.scope);
  const auto half = [&](const Phi4AudioMlp& m, const Value& x) { return mul_scalar(forward(c, g, m, x)); };
  const Value residual = add(arg, half(l.before, arg));
  Value x = forward(c, l.norm_attention, residual);
  x = add(residual, phi4_audio_attention(c, g, l.attention, x, mask));
  x = add(x, forward(c, g, l.conv, x));
  x = add(x, half(l.after, x));
  return forward(c, l.norm, x);
}

}  // namespace vlmest
