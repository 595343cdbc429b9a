// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/family/nemotron_h_vl/mamba2.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

/// Nemotron-H: layers that are Mamba-2, attention without positions, or an MLP, each with a norm ahead.
/// transformers 5.17 models/nemotron_h, class NemotronHModel.
namespace vlmest {

struct NemotronHText {
  enum class Layer : std::uint8_t { mamba, attention, mlp };
  std::int64_t vocab = 131072;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 21504;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 128;
  std::vector<Layer> layers;
  Mamba2Config mamba;
  bool mlp_bias = false;
  bool squares = true;                       ///< relu2: MLPs square what ReLU leaves
  Activation activation = Activation::silu;  ///< of others
};

/// One of the three.
struct NemotronHLayer {
  ScopeId scope = 0, mixer = 0, activation = 0;
  NemotronHText::Layer kind = NemotronHText::Layer::mlp;
  RmsNorm norm;
  Mamba2 mamba;
  Projections attention;
  Linear up, down;
};

struct NemotronHDecoder {
  const NemotronHText* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<NemotronHLayer> layers;
  RmsNorm norm;
};

inline Cache make_cache(const NemotronHText& g) { return empty_cache(static_cast<std::int64_t>(g.layers.size())); }

/// In the order of NemotronHBlock.__init__.
inline NemotronHLayer make_nemotron_h_layer(Context& c, const NemotronHText& g, std::int32_t index) {
  using Layer = NemotronHText::Layer;
  const Module m(c, "layers", index);
  NemotronHLayer l{.scope = m.scope, .kind = g.layers[static_cast<std::size_t>(index)]};
  l.norm = make_rms_norm(c, "norm", g.hidden);
  const Module mixer(c, "mixer");
  l.mixer = mixer.scope;
  switch (l.kind) {
    case Layer::mamba: l.mamba = make_mamba2(c, g.mamba); break;
    case Layer::attention: l.attention = make_projections(c, grouped_query(g, false, false)); break;
    case Layer::mlp:
      l.up = make_linear(c, "up_proj", g.hidden, g.intermediate, g.mlp_bias);
      l.down = make_linear(c, "down_proj", g.intermediate, g.hidden, g.mlp_bias);
      l.activation = c.b.child("act_fn");
  }
  return l;
}

/// In the order of NemotronHModel.__init__.
inline NemotronHDecoder make_decoder(Context& c, const NemotronHText& g) {
  NemotronHDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embeddings", g.vocab, g.hidden);
  d.layers = make_layers(static_cast<std::int64_t>(g.layers.size()),
                         [&](std::int32_t i) { return make_nemotron_h_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm_f", g.hidden);
  return d;
}

/// NemotronHAttention.forward: no rotation.
inline Attended nemotron_h_attention(Context& c, const NemotronHText& g, const NemotronHLayer& l, Value arg,
                                     const Value& mask, CacheLayer& cache) {
  using namespace eager;
  const Value given = std::move(arg);
  InScope in(c.b, l.mixer);
  const std::int64_t batch = given.size(0), tokens = given.size(1);
  Qkv y;
  y.q = split_heads(forward(c, l.attention.q, given), g.head_dim);
  y.k = split_heads(forward(c, l.attention.k, given), g.head_dim);
  y.v = split_heads(forward(c, l.attention.v, given), g.head_dim);
  update(c, cache, y.k, y.v);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .causal = true});
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = forward(c, l.attention.out, a.out);
  return a;
}

/// NemotronHMLP.forward: one expression, whose temporaries go once they are read.
inline Value nemotron_h_mlp(Context& c, const NemotronHText& g, const NemotronHLayer& l, Value arg) {
  using namespace eager;
  const Value given = std::move(arg);
  InScope in(c.b, l.mixer);
  Value x = forward(c, l.up, given);
  {
    InScope act(c.b, l.activation);
    const Value inner = std::move(x);
    if (g.squares) {
      Value positive = unary(functions::relu, inner);
      x = pow_scalar(std::move(positive));
    } else {
      x = activate(c, g.activation, inner);
    }
  }
  return forward(c, l.down, std::move(x));
}

/// NemotronHBlock.forward.
inline Value forward(Context& c, const NemotronHText& g, const NemotronHLayer& l, const Value& x, const Value& mask,
                     CacheLayer& cache) {
  using Layer = NemotronHText::Layer;
  InScope in(c.b, l.scope);
  Value h = forward(c, l.norm, x);
  Attended attended;  // of eager attention the weights too, which the caller's variable holds
  switch (l.kind) {
    case Layer::mamba: h = forward(c, l.mamba, h, cache); break;
    case Layer::attention:
      attended = nemotron_h_attention(c, g, l, h, mask, cache);
      h = std::move(attended.out);
      break;
    case Layer::mlp:
      h = nemotron_h_mlp(c, g, l, h);
      if (!cache.off) cache.seen += x.size(1);  // its entry counts along, and keeps nothing
  }
  return eager::add(x, h);
}

/// NemotronHModel.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const NemotronHDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const NemotronHText& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  recurrent_mask(c, attention_mask, tokens);  // of what is not padded it is empty
  Value x = embeds;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const NemotronHLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({static_cast<std::int32_t>(l.kind), l.scope, l.norm.weight}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
