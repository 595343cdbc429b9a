// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma3n/audio_config.hpp>
#include <vlmest/graph/eager/rows_convolution.hpp>
#include <vlmest/graph/eager/running_total.hpp>
#include <vlmest/nn/linear.hpp>

/// How Gemma 3n's audio tower shortens mel frames (transformers 5.17 modeling_gemma3n.py,
/// Gemma3nAudioSubSampleConvProjection): two convolutions, whose norms know no later frame.
namespace vlmest {

/// Gemma3nAudioSSCPConvBlock with its Gemma3nAudioCumulativeGroupNorm.
struct Gemma3nAudioConv {
  ScopeId scope = 0, conv_scope = 0, norm_scope = 0, activation_scope = 0;
  TensorId weight = none, norm = none;
  SoundSides kernel, stride;
};
struct Gemma3nAudioStem {
  ScopeId scope = 0;
  std::array<Gemma3nAudioConv, 2> convs;
  Linear project;
};

/// In the current scope.
inline Gemma3nAudioStem make_gemma3n_audio_stem(Context& c, const Gemma3nAudio& g) {
  Module m(c, "subsample_conv_projection");
  Gemma3nAudioStem s{.scope = m.scope};
  std::int64_t from = 1;
  for (std::size_t i = 0; i < s.convs.size(); ++i) {
    Gemma3nAudioConv& l = s.convs[i];
    l.kernel = g.kernels[i];
    l.stride = g.strides[i];
    Module block(c, i == 0 ? "conv_0" : "conv_1");
    l.scope = block.scope;
    {
      Module conv(c, "conv");
      l.conv_scope = conv.scope;
      l.weight = parameter(c, "weight", {g.channels[i], from, l.kernel.frames, l.kernel.mels});
    }
    {
      Module norm(c, "norm");
      l.norm_scope = norm.scope;
      l.norm = parameter(c, "weight", {g.channels[i]});
    }
    l.activation_scope = c.b.child("activation");
    from = g.channels[i];
  }
  s.project = make_linear(c, "input_proj_linear", checked_mul(g.channels[1], g.bins(2)), g.hidden, false);
  return s;
}

/// Gemma3nAudioCumulativeGroupNorm.forward of x[N, frames, bins, channels]: every step is a variable of its own. What
/// it multiplies by ones it would by a mask.
inline Value cumulative_norm(const Value& arg, const Value& weight) {
  using namespace eager;
  const Value x = to(arg, DType::fp32);
  const Value ones = fill_like("ones_like", x);
  const Value sums = sum_inner(x), totals = running_total(sums);
  const Value counts = sum_inner(ones), counted = running_total(counts);
  const Value count = unary("clamp", counted);
  const Value center = div(totals, count);
  Value squared;
  {
    Value apart = sub(x, center);
    squared = pow_scalar(std::move(apart));
  }
  const Value square_sums = sum_inner(squared), square_totals = running_total(square_sums);
  const Value variance = div(square_totals, count);
  Value y;
  {
    const Value apart = sub(x, center);
    Value scale = rsqrt(add_scalar(variance));
    y = mul(apart, std::move(scale));
  }
  const Value gain = to(weight, DType::fp32);
  y = mul(y, view(gain, {1, 1, 1, -1}));
  const Value out = mul(y, ones);
  return to(out, arg.dtype());
}

/// Gemma3nAudioSSCPConvBlock.forward: x[N, C, frames, bins].
inline Value forward(Context& c, const Gemma3nAudioConv& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.scope);
  const Value padded = pad(x, {{-1, 1, 1}, {-2, 0, l.kernel.frames - 1}});
  Value convolved;
  {
    InScope conv(c.b, l.conv_scope);
    convolved = rows_conv2d(padded, Value(c.b, l.weight), {}, {l.stride.frames, l.stride.mels});
  }
  const Value rows = contiguous(permute(convolved, {0, 2, 3, 1}));
  Value normed;
  {
    InScope norm(c.b, l.norm_scope);
    normed = cumulative_norm(rows, Value(c.b, l.norm));
  }
  const Value maps = contiguous(permute(normed, {0, 3, 1, 2}));
  InScope a(c.b, l.activation_scope);
  return unary(functions::relu, maps);
}

/// features[N, frames, mels] -> [N, states, hidden].
inline Value forward(Context& c, const Gemma3nAudioStem& s, const Value& features) {
  using namespace eager;
  InScope in(c.b, s.scope);
  Value x = forward(c, s.convs[0], unsqueeze(features, 1));
  x = forward(c, s.convs[1], x);
  const Value turned = contiguous(permute(x, {0, 2, 3, 1}));
  return forward(c, s.project, view(turned, {turned.size(0), turned.size(1), -1}));
}

}  // namespace vlmest
