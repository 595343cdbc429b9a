// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/gemma3n/audio_attention.hpp>
#include <vlmest/family/gemma3n/audio_convolution.hpp>
#include <vlmest/graph/eager/depthwise.hpp>
#include <vlmest/graph/eager/extremes.hpp>
#include <vlmest/graph/repeat.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma3n.py, Gemma3nAudioConformerFeedForward.
struct Gemma3nAudioFeedForward {
  ScopeId scope = 0;
  TensorId bound = none;  ///< gradient_clipping
  Linear first, second;
  RmsNorm pre_norm, post_norm;
};

/// Gemma3nAudioConformerBlock with its Gemma3nAudioConformerAttention and Gemma3nAudioConformerLightConv1d.
struct Gemma3nAudioLayer {
  ScopeId scope = 0, attention_scope = 0, conv_scope = 0, depthwise_scope = 0;
  Gemma3nAudioFeedForward before, after;
  TensorId attention_bound = none, conv_bound = none, bound = none, depthwise = none;
  RmsNorm pre_attention, post_attention, conv_pre_norm, conv_norm, norm;
  Gemma3nAudioAttention attention;
  Linear post, start, end;
};

struct Gemma3nAudioTower {
  const Gemma3nAudio* config = nullptr;
  ScopeId scope = 0;
  Gemma3nAudioStem stem;
  std::vector<Gemma3nAudioLayer> layers;
};

inline Gemma3nAudioFeedForward make_gemma3n_audio_feed_forward(Context& c, const char* name, const Gemma3nAudio& g) {
  Module m(c, name);
  Gemma3nAudioFeedForward r{.scope = m.scope};
  r.bound = buffer(c, "gradient_clipping", Shape{}, c.dtype());
  r.pre_norm = make_rms_norm(c, "pre_layer_norm", g.hidden, RmsNorm::Kind::gemma4);
  r.first = make_linear(c, "ffw_layer_1", g.hidden, checked_mul(g.hidden, 4), false);
  r.second = make_linear(c, "ffw_layer_2", checked_mul(g.hidden, 4), g.hidden, false);
  r.post_norm = make_rms_norm(c, "post_layer_norm", g.hidden, RmsNorm::Kind::gemma4);
  return r;
}

/// In the order of Gemma3nAudioConformerBlock.__init__.
inline Gemma3nAudioLayer make_gemma3n_audio_layer(Context& c, const Gemma3nAudio& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "conformer", index);
  Gemma3nAudioLayer l{.scope = m.scope};
  l.before = make_gemma3n_audio_feed_forward(c, "ffw_layer_start", g);
  {
    Module a(c, "attention");
    l.attention_scope = a.scope;
    l.attention_bound = buffer(c, "gradient_clipping", Shape{}, c.dtype());
    l.pre_attention = make_rms_norm(c, "pre_attn_norm", g.hidden, kind);
    l.attention = make_gemma3n_audio_attention(c, g);
    l.post = make_linear(c, "post", g.hidden, g.hidden, false);
    l.post_attention = make_rms_norm(c, "post_norm", g.hidden, kind);
  }
  {
    Module a(c, "lconv1d");
    l.conv_scope = a.scope;
    l.conv_pre_norm = make_rms_norm(c, "pre_layer_norm", g.hidden, kind);
    l.start = make_linear(c, "linear_start", g.hidden, checked_mul(g.hidden, 2), false);
    {
      Module conv(c, "depthwise_conv1d");
      l.depthwise_scope = conv.scope;
      l.depthwise = parameter(c, "weight", {g.hidden, 1, g.kernel});
    }
    l.conv_bound = buffer(c, "gradient_clipping", Shape{}, c.dtype());
    l.conv_norm = make_rms_norm(c, "conv_norm", g.hidden, kind);
    l.end = make_linear(c, "linear_end", g.hidden, g.hidden, false);
  }
  l.after = make_gemma3n_audio_feed_forward(c, "ffw_layer_end", g);
  l.bound = buffer(c, "gradient_clipping", Shape{}, c.dtype());
  l.norm = make_rms_norm(c, "norm", g.hidden, kind);
  return l;
}

/// Gemma3nAudioEncoder.__init__, in the current scope.
inline Gemma3nAudioTower make_tower(Context& c, const Gemma3nAudio& g) {
  Gemma3nAudioTower t{.config = &g, .scope = c.b.scope()};
  t.stem = make_gemma3n_audio_stem(c, g);
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_gemma3n_audio_layer(c, g, i); });
  return t;
}

/// torch.clamp(x, -bound, bound) by a buffer.
inline Value held(Context& c, const Value& x, TensorId bound) {
  const Value high(c.b, bound);
  Value low = eager::neg(high);
  return eager::clamp(x, std::move(low), high);
}

inline Value forward(Context& c, const Gemma3nAudioFeedForward& f, const Value& arg) {
  using namespace eager;
  InScope in(c.b, f.scope);
  Value x = held(c, arg, f.bound);
  x = forward(c, f.pre_norm, x);
  x = forward(c, f.first, x);
  x = unary(functions::silu, x);
  x = forward(c, f.second, x);
  x = held(c, x, f.bound);
  x = forward(c, f.post_norm, x);
  Value scaled = mul_scalar(x);
  return add(arg, std::move(scaled));
}

/// Gemma3nAudioConformerAttention.forward.
inline Value attend(Context& c, const Gemma3nAudioLayer& l, const Gemma3nAudio& g, const Value& arg,
                    const Value& mask) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  Value x = held(c, arg, l.attention_bound);
  const Value normed = forward(c, l.pre_attention, x);
  const Value attended = forward(c, l.attention, g, normed, mask);
  const Value flat = reshape(attended, {attended.size(0), attended.size(1), g.hidden});
  x = forward(c, l.post, flat);
  x = held(c, x, l.attention_bound);
  Value last = forward(c, l.post_attention, x);
  return add(arg, std::move(last));
}

/// Gemma3nAudioConformerLightConv1d.forward.
inline Value light_conv(Context& c, const Gemma3nAudioLayer& l, const Gemma3nAudio& g, const Value& arg) {
  using namespace eager;
  InScope in(c.b, l.conv_scope);
  Value x = forward(c, l.conv_pre_norm, arg);
  x = forward(c, l.start, x);
  x = glu(x);
  const Value turned = permute(x, {0, 2, 1});
  const Value padded = pad(turned, -1, g.kernel - 1, 0);
  {
    InScope conv(c.b, l.depthwise_scope);
    x = depthwise_conv1d(padded, Value(c.b, l.depthwise), Value(), 0);
  }
  x = permute(x, {0, 2, 1});
  x = held(c, x, l.conv_bound);
  x = forward(c, l.conv_norm, x);
  x = unary(functions::silu, x);
  x = forward(c, l.end, x);
  return add(x, arg);
}

/// Gemma3nAudioConformerBlock.forward.
inline Value forward(Context& c, const Gemma3nAudioLayer& l, const Gemma3nAudio& g, Value arg, const Value& mask) {
  using namespace eager;
  const Value given = std::move(arg);
  InScope in(c.b, l.scope);
  Value x = forward(c, l.before, given);
  x = attend(c, l, g, x, mask);
  const Value real = pointwise("bitwise_not", DType::boolean, mask);
  Value shown;
  {
    Value weights = to(unsqueeze(real, -1), x.dtype());
    shown = mul(x, std::move(weights));
  }
  x = light_conv(c, l, g, shown);
  x = forward(c, l.after, x);
  x = held(c, x, l.bound);
  return forward(c, l.norm, x);
}

/// Gemma3nAudioEncoder.forward: features[N, frames, mels] hidden by mask[N, frames] -> [N, features, hidden]; the mask
/// of these is left in `mask`.
inline Value forward(Context& c, const Gemma3nAudioTower& t, const Value& features, Value& mask) {
  using namespace eager;
  const Gemma3nAudio& g = *t.config;
  InScope in(c.b, t.scope);
  Value x = forward(c, t.stem, features);
  // Each state is hidden where the frame is that its convolutions begin at.
  Value places = mul_scalar(arange(c.b, x.size(1)));
  places = unary("clamp", places);
  Value hidden = gather_last(mask, expand(unsqueeze(places, 0), {mask.size(0), x.size(1)}));
  LayerRepeater repeat(c.b, false);
  for (const Gemma3nAudioLayer& l : t.layers)
    x = repeat({0, l.scope, l.before.bound}, x, {}, [&](const Value& h) { return forward(c, l, g, h, hidden); });
  if (g.reduction > 1) {
    x = slice(x, 1, 0, x.size(1), g.reduction);
    hidden = slice(hidden, 1, 0, hidden.size(1), g.reduction);
  }
  x = masked_fill(x, unsqueeze(hidden, -1));
  mask = std::move(hidden);
  return x;
}

}  // namespace vlmest
