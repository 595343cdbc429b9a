// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/family/phi4_multimodal/audio_layer.hpp>
#include <vlmest/graph/eager/rows_convolution.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/embedding.hpp>

namespace vlmest {

/// One of the convolutions that halve frames and mel bins, and the one of single places behind it, which the first of
/// them does without.
struct Phi4Halving {
  HalvingConv2d halve;
  std::optional<HalvingConv2d> mix;
};

/// transformers 5.17 modeling_phi4_multimodal.py, Phi4MultimodalAudioModel.
struct Phi4AudioEncoder {
  const Phi4Audio* config = nullptr;
  ScopeId scope = 0, norm_scope = 0, embed_scope = 0, activation_scope = 0, bias_scope = 0;
  TensorId mean = none, scale = none;
  std::vector<Phi4Halving> halvings;
  Linear out;
  Embedding bias;
  std::vector<Phi4AudioLayer> layers;
};

/// A convolution of `taps` a side called conv.<index>.
inline HalvingConv2d make_phi4_conv(Context& c, std::int32_t index, std::int64_t in, std::int64_t out,
                                    std::int64_t taps) {
  Module m(c, "conv", index);
  HalvingConv2d r{.scope = m.scope};
  r.weight = parameter(c, "weight", {out, in, taps, taps});
  r.bias = parameter(c, "bias", {out});
  return r;
}

/// In the current scope.
inline Phi4AudioEncoder make_phi4_audio(Context& c, const Phi4Audio& g) {
  Phi4AudioEncoder e{.config = &g, .scope = c.b.scope()};
  {
    Module n(c, "encoder_embedding");
    e.norm_scope = n.scope;
    e.mean = buffer(c, "global_mean", {g.mels}, c.dtype());
    e.scale = buffer(c, "global_invstd", {g.mels}, c.dtype());
  }
  {
    Module m(c, "embed");
    e.embed_scope = m.scope;
    e.activation_scope = c.b.child("act_fn");
    std::int32_t index = 0;  // of the Sequential, where activations count too
    for (std::int64_t i = 0; i < g.halvings; ++i) {
      Phi4Halving h{.halve = make_phi4_conv(c, index++, 1, g.channels, 3)};
      if (i > 0) h.mix = make_phi4_conv(c, index++, g.channels, g.channels, 1);
      ++index;
      e.halvings.push_back(h);
    }
    e.out = make_linear(c, "out", checked_mul(g.channels, g.halved(g.mels)), g.hidden, true);
  }
  {
    Module m(c, "relative_attention_bias_layer");
    e.bias_scope = m.scope;
    e.bias = make_embedding(c, "bias_values", g.biases(), g.heads);
  }
  e.layers = make_layers(g.layers, [&](std::int32_t i) { return make_phi4_audio_layer(c, g, i); });
  return e;
}

/// Phi4MultimodalAudioNemoConvSubsampling.forward: features[N, frames, mels] -> [N, states, hidden], and which states
/// no padding is, bool[N, 1, states], where clips[N, frames] say which frames.
struct Phi4States {
  Value x, real;
};
inline Phi4States shorten(Context& c, const Phi4AudioEncoder& e, const Value& features, const Value& clips) {
  using namespace eager;
  InScope in(c.b, e.embed_scope);
  Value x = unsqueeze(features, 1);
  for (const Phi4Halving& h : e.halvings) {
    {
      InScope conv(c.b, h.halve.scope);
      const Value weight(c.b, h.halve.weight), bias(c.b, h.halve.bias);
      x = h.mix ? rows_conv2d(x, weight, bias, {2, 2}, 1) : strided_conv2d(x, weight, bias, 2, 1);
    }
    if (h.mix) {
      InScope conv(c.b, h.mix->scope);
      x = rows_conv2d(x, Value(c.b, h.mix->weight), Value(c.b, h.mix->bias), {1, 1});
    }
    x = activated(c, e.activation_scope, e.config->halving_activation, x);
  }
  Phi4States s;
  {
    const std::int64_t n = x.size(0), states = x.size(2);
    Value rows = reshape(transpose(x, 1, 2), {n, states, -1});
    x = forward(c, e.out, rows);
  }
  s.x = x;
  if (!clips) return s;
  const Value frames = count_true(clips, 1);
  const Value counted = unary("ceil", pointwise("div.Tensor", DType::fp32, frames));
  const Value places = fill(c.b, "arange.start", {x.size(1)}, DType::int64);
  s.real =
      unsqueeze(compare("lt.Tensor", expand(unsqueeze(places, 0), {x.size(0), x.size(1)}), unsqueeze(counted, 1)), 1);
  return s;
}

/// Phi4MultimodalAudioRelativeAttentionBias.forward: [1, heads, L, L], a view of [L, L, heads].
inline Value distance_bias(Context& c, const Phi4AudioEncoder& e, std::int64_t length) {
  using namespace eager;
  InScope in(c.b, e.bias_scope);
  const Phi4Audio& g = *e.config;
  if (g.symmetric && length > g.distance)
    throw Error("audio_config.bias_max_distance",
                std::to_string(length) + " states, where the class has no bias for a distance of " +
                    std::to_string(g.distance) + " (bias_symmetric)",
                "give shorter clips");
  const Value context = unsqueeze(arange(c.b, length), 1);
  const Value memory = unsqueeze(arange(c.b, length), 0);
  Value distance = sub(memory, context);
  distance = masked_fill(distance, compare_scalar("lt.Scalar", distance));
  distance = masked_fill(distance, compare_scalar("gt.Scalar", distance));
  const Value entries = g.symmetric ? unary("abs", distance) : add_scalar(distance);
  const Value bias = forward(c, e.bias, entries);
  return unsqueeze(permute(bias, {2, 0, 1}), 0);
}

/// States that positions are made for: longer sequences run as several (Phi4MultimodalAudioModel.forward).
inline constexpr std::int64_t phi4_audio_window = 500;

/// unfold_tensor: x[1, T, C] -> [T / window, window, C]. Throws Error for several clips, whose view fails there.
inline Value audio_windows(const Value& x, std::int64_t window) {
  using namespace eager;
  if (x.size(0) > 1)
    throw Error("plan.audio.seconds",
                "several clips of which one has more than " + std::to_string(window) +
                    " states, which transformers' class cannot take apart",
                "give shorter clips, or one clip");
  const std::int64_t channels = x.size(2);
  Value t = transpose(x, -1, -2);
  t = im2col(unsqueeze(t, 2), 1, window);
  t = permute(view(t, {1, channels, window, t.size(2)}), {0, 3, 2, 1});
  return contiguous(view(t, {-1, window, channels}));
}

/// What Phi4MultimodalAudioModel.forward holds until it returns.
struct Phi4Heard {
  Value mask, real, padded, bias, additive;
};

/// Phi4MultimodalAudioModel.forward: features[N, frames, mels], clips bool[N, frames] or nothing -> [N, states,
/// hidden].
inline Value forward(Context& c, const Phi4AudioEncoder& e, const Value& features, const Value& clips) {
  using namespace eager;
  const Phi4Audio& g = *e.config;
  InScope in(c.b, e.scope);
  Value x;
  {
    InScope norm(c.b, e.norm_scope);
    Value apart = sub(features, Value(c.b, e.mean));
    x = mul(std::move(apart), Value(c.b, e.scale));
  }
  const std::int64_t clip_count = x.size(0), states = g.states(x.size(1));
  Phi4Heard h;
  {
    const Value seen = from_host(c.b, {clip_count, states, states}, DType::boolean, "_to_copy");
    Phi4States s = shorten(c, e, x, clips);
    h.real = std::move(s.real);
    h.mask = h.real ? pointwise("bitwise_and.Tensor", DType::boolean, h.real, seen) : seen;
    x = std::move(s.x);
  }
  const bool unfolded = states > phi4_audio_window;
  const std::int64_t filler = (phi4_audio_window - states % phi4_audio_window) % phi4_audio_window;
  if (unfolded) {
    if (filler > 0) {
      h.padded = pad(x, 1, 0, filler);
      x = h.padded;
    }
    x = audio_windows(x, phi4_audio_window);
    h.mask = from_host(c.b, {x.size(0), x.size(1), x.size(1)}, DType::boolean, "_to_copy");
  }
  h.bias = distance_bias(c, e, x.size(1));
  h.additive = add(unsqueeze(h.mask, 1), h.bias);
  LayerRepeater repeat(c.b, false);
  for (const Phi4AudioLayer& l : e.layers)
    x = repeat({0, l.scope, l.before.norm.weight}, x, {},
               [&](const Value& y) { return forward(c, g, l, y, h.additive); });
  if (!unfolded) return x;
  x = reshape(x, {1, -1, x.size(2)});
  return filler > 0 ? slice(x, 1, 0, states) : x;
}

}  // namespace vlmest
