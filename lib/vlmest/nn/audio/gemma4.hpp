// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/audio/conv.hpp>
#include <vlmest/nn/audio/gemma4_attention.hpp>
#include <vlmest/nn/audio/layout.hpp>

namespace vlmest {

/// Gemma4AudioFeedForward.
struct Gemma4AudioFeedForward {
  ScopeId scope = 0, activation_scope = 0;
  ClippedLinear first, second;
  RmsNorm pre_norm, post_norm;
};

/// Gemma4AudioLayer with its Gemma4AudioLightConv1d.
struct Gemma4AudioLayer {
  ScopeId scope = 0, conv_scope = 0, depthwise_scope = 0, activation_scope = 0;
  Gemma4AudioFeedForward before, after;
  Gemma4AudioAttention attention;
  ClippedLinear start, end;
  TensorId depthwise = none;
  RmsNorm conv_pre_norm, conv_norm, norm_pre_attn, norm_post_attn, norm_out;
};

/// Gemma4AudioSubSampleConvProjectionLayer.
struct Gemma4AudioHalving {
  ScopeId scope = 0, norm_scope = 0, activation_scope = 0;
  HalvingConv2d conv;
  TensorId norm = none;
};

struct Gemma4AudioTower {
  const Gemma4Audio* config = nullptr;
  ScopeId scope = 0, subsample_scope = 0, positions_scope = 0;
  std::array<Gemma4AudioHalving, 2> halvings;
  Linear input_proj, output_proj;
  TensorId timescales = none;
  std::vector<Gemma4AudioLayer> layers;
};

/// Gemma4AudioFeedForward.__init__.
inline Gemma4AudioFeedForward make_audio_feed_forward(Context& c, const char* name, const Gemma4Audio& g) {
  Module m(c, name);
  Gemma4AudioFeedForward r{.scope = m.scope};
  r.first = make_clipped_linear(c, "ffw_layer_1", g.hidden, checked_mul(g.hidden, 4), g.clips);
  r.second = make_clipped_linear(c, "ffw_layer_2", checked_mul(g.hidden, 4), g.hidden, g.clips);
  r.pre_norm = make_rms_norm(c, "pre_layer_norm", g.hidden, RmsNorm::Kind::gemma4);
  r.post_norm = make_rms_norm(c, "post_layer_norm", g.hidden, RmsNorm::Kind::gemma4);
  r.activation_scope = c.b.child("act_fn");
  return r;
}

/// Gemma4AudioLayer.__init__.
inline Gemma4AudioLayer make_audio_layer(Context& c, const Gemma4Audio& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "layers", index);
  Gemma4AudioLayer l{.scope = m.scope};
  l.before = make_audio_feed_forward(c, "feed_forward1", g);
  l.after = make_audio_feed_forward(c, "feed_forward2", g);
  l.attention = make_audio_attention(c, g);
  {
    Module a(c, "lconv1d");
    l.conv_scope = a.scope;
    l.start = make_clipped_linear(c, "linear_start", g.hidden, checked_mul(g.hidden, 2), g.clips);
    l.end = make_clipped_linear(c, "linear_end", g.hidden, g.hidden, g.clips);
    {
      Module conv(c, "depthwise_conv1d");
      l.depthwise_scope = conv.scope;
      l.depthwise = parameter(c, "weight", {g.hidden, 1, g.kernel});
    }
    l.conv_pre_norm = make_rms_norm(c, "pre_layer_norm", g.hidden, kind);
    l.conv_norm = make_rms_norm(c, "conv_norm", g.hidden, kind);
    l.activation_scope = c.b.child("act_fn");
  }
  l.norm_pre_attn = make_rms_norm(c, "norm_pre_attn", g.hidden, kind);
  l.norm_post_attn = make_rms_norm(c, "norm_post_attn", g.hidden, kind);
  l.norm_out = make_rms_norm(c, "norm_out", g.hidden, kind);
  return l;
}

/// Gemma4AudioModel.__init__, in the current scope.
inline Gemma4AudioTower make_tower(Context& c, const Gemma4Audio& g) {
  Gemma4AudioTower t{.config = &g, .scope = c.b.scope()};
  {
    Module s(c, "subsample_conv_projection");
    t.subsample_scope = s.scope;
    std::int64_t from = 1;
    for (std::size_t i = 0; i < g.channels.size(); ++i) {
      Module l(c, i == 0 ? "layer0" : "layer1");
      Gemma4AudioHalving& h = t.halvings[i];
      h.scope = l.scope;
      h.conv = make_halving_conv2d(c, "conv", from, g.channels[i], false);
      Module norm(c, "norm");
      h.norm_scope = norm.scope;
      h.norm = parameter(c, "weight", {g.channels[i]});
      from = g.channels[i];
    }
    for (Gemma4AudioHalving& h : t.halvings) {
      InScope l(c.b, h.scope);
      h.activation_scope = c.b.child("act");
    }
    t.input_proj = make_linear(c, "input_proj_linear", checked_mul(g.channels[0] / 4, g.channels[1]), g.hidden, false);
  }
  {
    Module r(c, "rel_pos_enc");
    t.positions_scope = r.scope;
    t.timescales = buffer(c, "inv_timescales", {1, 1, g.hidden / 2}, c.dtype());
  }
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_audio_layer(c, g, i); });
  t.output_proj = make_linear(c, "output_proj", g.hidden, g.out, true);
  return t;
}

/// Gemma4AudioFeedForward.forward.
inline Value forward(Context& c, const Gemma4AudioFeedForward& f, Activation activation, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, f.scope);
  const Value residual = x;
  x = clamp(x, ClampedAt::both);
  x = forward(c, f.pre_norm, x);
  x = forward(c, f.first, x);
  {
    InScope a(c.b, f.activation_scope);
    x = activate(c, activation, x);
  }
  x = forward(c, f.second, x);
  x = clamp(x, ClampedAt::both);
  x = forward(c, f.post_norm, x);
  x = scale_(std::move(x));
  return add_(std::move(x), residual);
}

/// Gemma4AudioLightConv1d.forward.
inline Value light_conv(Context& c, const Gemma4AudioLayer& l, const Gemma4Audio& g, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.conv_scope);
  const Value residual = x;
  x = forward(c, l.conv_pre_norm, x);
  x = forward(c, l.start, x);
  x = glu(x);
  {
    Value turned = transpose(x, 1, 2);
    InScope conv(c.b, l.depthwise_scope);
    const Value padded = pad(turned, 2, g.kernel - 1, 0);
    turned = depthwise_conv1d(padded, Value(c.b, l.depthwise), Value(), 0);
    x = transpose(turned, 1, 2);
  }
  x = clamp(x, ClampedAt::both);
  x = forward(c, l.conv_norm, x);
  {
    InScope a(c.b, l.activation_scope);
    x = activate(c, g.activation, x);
  }
  x = forward(c, l.end, x);
  return add_(std::move(x), residual);
}

/// Gemma4AudioLayer.forward.
inline Value forward(Context& c, const Gemma4AudioLayer& l, const Gemma4Audio& g, Value arg, const Value& mask,
                     const Value& positions) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  x = forward(c, l.before, g.activation, x);
  const Value residual = x;
  x = clamp(x, ClampedAt::both);
  x = forward(c, l.norm_pre_attn, x);
  Attended attended = forward(c, l.attention, g, x, mask, positions);  // its weights stay to the end
  x = std::move(attended.out);
  x = clamp(x, ClampedAt::both);
  x = forward(c, l.norm_post_attn, x);
  x = add_(std::move(x), residual);
  x = light_conv(c, l, g, x);
  x = forward(c, l.after, g.activation, x);
  x = clamp(x, ClampedAt::both);
  return forward(c, l.norm_out, x);
}

/// Gemma4AudioSubSampleConvProjectionLayer.forward: x[N, C, frames, mels], mask[N, frames], both of which it halves.
inline Value forward(Context& c, const Gemma4AudioHalving& h, Value x, Value& mask) {
  using namespace eager;
  InScope in(c.b, h.scope);
  x = mul(x, unsqueeze(unsqueeze(mask, 1), 3));
  x = forward(c, h.conv, x);
  Value y = permute(x, {0, 2, 3, 1});
  {
    InScope n(c.b, h.norm_scope);
    y = layer_norm(std::move(y), Value(c.b, h.norm), {});
  }
  y = contiguous(permute(y, {0, 3, 1, 2}));
  {
    InScope a(c.b, h.activation_scope);
    y = unary(functions::relu, std::move(y));
  }
  mask = slice(mask, 1, 0, mask.size(1), 2);
  return y;
}

/// Gemma4AudioRelPositionalEncoding.forward: [1, half a context + 1, hidden].
inline Value relative_positions(Context& c, const Gemma4AudioTower& t) {
  using namespace eager;
  InScope in(c.b, t.positions_scope);
  const std::int64_t n = t.config->context() / 2 + 1;
  const Value ids = unsqueeze(fill(c.b, "arange.start_step", {n}, DType::int64), 1);
  const Value time = mul(ids, Value(c.b, t.timescales));
  Value sine = sin(time);
  Value cosine = cos(time);
  return to(cat(std::move(sine), std::move(cosine), -1), c.dtype());
}

/// Gemma4AudioModel.forward: features[N, frames, mels] and mask[N, frames] (bool) -> [N, states, out]; the states' mask
/// is left in `mask`.
inline Value forward(Context& c, const Gemma4AudioTower& t, const Value& features, Value& mask) {
  using namespace eager;
  const Gemma4Audio& g = *t.config;
  if (g.channels[0] / 4 != 32)
    throw Error("model.audio_config.subsampling_conv_channels",
                "the projection behind the convolutions takes a quarter of the first one's for the mel bins that are "
                "left, of which there are 32",
                "give 128 first");
  InScope in(c.b, t.scope);
  Value x;
  {
    InScope s(c.b, t.subsample_scope);
    x = unsqueeze(features, 1);
    for (const Gemma4AudioHalving& h : t.halvings) x = forward(c, h, x, mask);
    x = permute(x, {0, 2, 3, 1});
    x = reshape(contiguous(x), {x.size(0), x.size(1), -1});
    x = forward(c, t.input_proj, std::move(x));
  }
  const Value positions = relative_positions(c, t);
  const Value visible = blocked_mask(c, g, mask, x.size(1));
  LayerRepeater repeat(c.b);
  for (const Gemma4AudioLayer& l : t.layers)
    x = repeat({0, l.scope, l.before.first.linear.weight}, x, {},
               [&](const Value& h) { return forward(c, l, g, h, visible, positions); });
  x = forward(c, t.output_proj, x);
  return x;
}

}  // namespace vlmest
