// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/audio/conv.hpp>
#include <vlmest/nn/audio/whisper_layer.hpp>
#include <vlmest/nn/embedding.hpp>

namespace vlmest {

/// Whisper's encoder (transformers 5.17 models/qwen2_audio, Qwen2AudioEncoder; models/voxtral, VoxtralEncoder): mel
/// frames, all rows of one length, through two convolutions, a table of positions and layers of full attention.
struct WhisperEncoder {
  WhisperWidths widths;
  std::int64_t mels = 128;
  std::int64_t layers = 32;
  std::int64_t positions = 1500;  ///< max_source_positions
  bool pools = false;             ///< Qwen2-Audio: pairs of states are averaged before the norm
  bool wide_positions = false;    ///< Voxtral: the table stays in fp32 (_keep_in_fp32_modules_strict)
};

struct WhisperTower {
  const WhisperEncoder* config = nullptr;
  ScopeId scope = 0, pool_scope = 0;
  Conv1d conv1, conv2;
  TensorId positions = none;
  std::vector<WhisperLayer> layers;
  LayerNorm norm;
};

/// In the order of WhisperEncoder.__init__, in the current scope.
inline WhisperTower make_tower(Context& c, const WhisperEncoder& g) {
  WhisperTower t{.config = &g, .scope = c.b.scope()};
  t.conv1 = make_conv1d(c, "conv1", g.mels, g.widths.hidden, 3, 1);
  t.conv2 = make_conv1d(c, "conv2", g.widths.hidden, g.widths.hidden, 3, 2);
  {
    Module p(c, "embed_positions");
    t.positions = c.b.persistent("weight", Role::weight, g.wide_positions ? DType::fp32 : c.dtype(),
                                 {g.positions, g.widths.hidden});
  }
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_whisper_layer(c, g.widths, i); });
  t.norm = make_layer_norm(c, "layer_norm", g.widths.hidden);
  t.pool_scope = c.b.child("avg_pooler");
  return t;
}

/// gelu(conv(x)), of a variable that it rebinds.
inline void gelu_conv(Context& c, const Conv1d& conv, Value& x, bool embeds = false) {
  Value y = forward(c, conv, x);
  if (embeds) y = input_embedding(c, std::move(y));
  x = eager::unary(eager::functions::gelu, std::move(y));
}

/// modeling_qwen2_audio.py, Qwen2AudioEncoder.forward: features[N, mels, frames] -> [N, states, hidden].
inline Value forward(Context& c, const WhisperTower& t, const Value& features, const Value& mask) {
  using namespace eager;
  const WhisperEncoder& g = *t.config;
  InScope in(c.b, t.scope);
  Value embeds = features;
  gelu_conv(c, t.conv1, embeds, true);
  gelu_conv(c, t.conv2, embeds);
  embeds = permute(embeds, {0, 2, 1});
  Value x = add(embeds, Value(c.b, t.positions));
  x = to(x, embeds.dtype());
  // What comes back through the pooling is not row-major, and neither are sums with it: no layer's backward is a copy
  // of another's.
  LayerRepeater repeat(c.b);
  for (const WhisperLayer& l : t.layers)
    x = repeat({.scope = l.scope, .first_parameter = first_parameter(l), .input_read_elsewhere = g.pools}, x, {},
               [&](const Value& h) { return forward(c, l, g.widths, h, mask); });
  if (g.pools) {
    x = permute(x, {0, 2, 1});
    {
      InScope p(c.b, t.pool_scope);
      x = avg_pool1d(x, 2);
    }
    x = permute(x, {0, 2, 1});
  }
  return forward(c, t.norm, x);
}

}  // namespace vlmest
