// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/clipped_linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Gemma 4's audio tower (transformers 5.17 models/gemma4, Gemma4AudioModel), a conformer: what it loads. It does not
/// run without audio, which is not modelled.
struct Gemma4Audio {
  std::int64_t hidden = 1024;
  std::int64_t layers = 12;
  std::int64_t heads = 8;
  std::array<std::int64_t, 2> channels{128, 32};  ///< of the two convolutions that shorten the sequence
  std::int64_t kernel = 5;                        ///< of each layer's convolution over time
  std::int64_t out = 1536;                        ///< output_proj_dims
  bool clips = true;                              ///< use_clipped_linears
};

/// Gemma4AudioFeedForward.__init__.
inline void declare_audio_feed_forward(Context& c, const char* name, const Gemma4Audio& g) {
  Module m(c, name);
  make_clipped_linear(c, "ffw_layer_1", g.hidden, checked_mul(g.hidden, 4), g.clips);
  make_clipped_linear(c, "ffw_layer_2", checked_mul(g.hidden, 4), g.hidden, g.clips);
  make_rms_norm(c, "pre_layer_norm", g.hidden, RmsNorm::Kind::gemma4);
  make_rms_norm(c, "post_layer_norm", g.hidden, RmsNorm::Kind::gemma4);
}

/// Gemma4AudioLayer.__init__.
inline void declare_audio_layer(Context& c, const Gemma4Audio& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  const std::int64_t head_dim = g.hidden / g.heads, width = checked_mul(g.heads, head_dim);
  Module m(c, "layers", index);
  declare_audio_feed_forward(c, "feed_forward1", g);
  declare_audio_feed_forward(c, "feed_forward2", g);
  {
    Module a(c, "self_attn");
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) make_clipped_linear(c, name, g.hidden, width, g.clips);
    make_clipped_linear(c, "post", g.hidden, g.hidden, g.clips);
    make_linear(c, "relative_k_proj", g.hidden, width, false);
    parameter(c, "per_dim_scale", {head_dim});
    buffer(c, "softcap", Shape{}, c.dtype());
  }
  {
    Module a(c, "lconv1d");
    make_clipped_linear(c, "linear_start", g.hidden, checked_mul(g.hidden, 2), g.clips);
    make_clipped_linear(c, "linear_end", g.hidden, g.hidden, g.clips);
    {
      Module conv(c, "depthwise_conv1d");
      parameter(c, "weight", {g.hidden, 1, g.kernel});
    }
    make_rms_norm(c, "pre_layer_norm", g.hidden, kind);
    make_rms_norm(c, "conv_norm", g.hidden, kind);
  }
  for (const char* name : {"norm_pre_attn", "norm_post_attn", "norm_out"}) make_rms_norm(c, name, g.hidden, kind);
}

/// Gemma4AudioModel.__init__, in the current scope.
inline void declare_audio_tower(Context& c, const Gemma4Audio& g) {
  {
    Module s(c, "subsample_conv_projection");
    std::int64_t from = 1;
    for (std::size_t i = 0; i < g.channels.size(); ++i) {
      Module l(c, i == 0 ? "layer0" : "layer1");
      {
        Module conv(c, "conv");
        parameter(c, "weight", {g.channels[i], from, 3, 3});
      }
      Module norm(c, "norm");
      parameter(c, "weight", {g.channels[i]});
      from = g.channels[i];
    }
    make_linear(c, "input_proj_linear", checked_mul(g.channels[0] / 4, g.channels[1]), g.hidden, false);
  }
  {
    Module r(c, "rel_pos_enc");
    buffer(c, "inv_timescales", {1, 1, g.hidden / 2}, c.dtype());
  }
  for (std::int64_t i = 0; i < g.layers; ++i) declare_audio_layer(c, g, static_cast<std::int32_t>(i));
  make_linear(c, "output_proj", g.hidden, g.out, true);
}

}  // namespace vlmest
