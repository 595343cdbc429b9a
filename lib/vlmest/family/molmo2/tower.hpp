// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <vlmest/family/molmo2/attention.hpp>
#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/block.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// The vision transformer of Molmo 2 (allenai/molmo2 olmo/hf_model/modeling_molmo2.py, Molmo2VisionTransformer):
/// patches that come as rows, layers of ViT's build, of which the results of some are kept. Defaults: Molmo2VitConfig.
struct Molmo2Vision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t layers = 27;  ///< of the config; those behind the last one that is read are not made
  std::int64_t image_size = 378;
  std::int64_t patch_size = 14;
  Molmo2AttentionConfig attention;
  Activation activation = Activation::gelu_tanh;
  std::vector<std::int64_t> read;  ///< vit_layers, counted from the first layer, in the order in which they are joined

  static constexpr std::int64_t channels = 3;
  std::int64_t side() const { return image_size / patch_size; }
  std::int64_t patches() const { return checked_mul(side(), side()); }
  std::int64_t patch_pixels() const { return checked_mul(channels, checked_mul(patch_size, patch_size)); }
  std::int64_t made() const { return *std::max_element(read.begin(), read.end()) + 1; }
  /// Channels of what is read of a patch.
  std::int64_t joined() const { return checked_mul(hidden, static_cast<std::int64_t>(read.size())); }
};

struct Molmo2VisionBlock {
  ScopeId scope = 0, mlp_scope = 0, activation_scope = 0;
  Molmo2Attention attention;
  Linear w1, w2;
  LayerNorm attention_norm, ffn_norm;
};

struct Molmo2Vit {
  const Molmo2Vision* config = nullptr;
  ScopeId scope = 0, layers_scope = 0;
  TensorId positions = none;
  Linear patch_embedding;
  std::vector<Molmo2VisionBlock> blocks;
};

/// In the order of Molmo2VisionBlock.__init__.
inline Molmo2VisionBlock make_molmo_block(Context& c, const Molmo2Vision& g, std::int32_t index) {
  Module m(c, "resblocks", index);
  Molmo2VisionBlock b{.scope = m.scope};
  b.attention = make_molmo_attention(c, "attention", g.attention);
  {
    Module f(c, "feed_forward");
    b.mlp_scope = f.scope;
    b.w1 = make_linear(c, "w1", g.hidden, g.intermediate, true);
    b.activation_scope = c.b.child("act");
    b.w2 = make_linear(c, "w2", g.intermediate, g.hidden, true);
  }
  b.attention_norm = make_layer_norm(c, "attention_norm", g.hidden);
  b.ffn_norm = make_layer_norm(c, "ffn_norm", g.hidden);
  return b;
}

/// In the order of Molmo2VisionTransformer.__init__.
inline Molmo2Vit make_molmo_vit(Context& c, const Molmo2Vision& g) {
  Module m(c, "image_vit", Part::vision);
  Molmo2Vit t{.config = &g, .scope = m.scope};
  t.positions = parameter(c, "positional_embedding", {g.patches(), g.hidden});
  t.patch_embedding = make_linear(c, "patch_embedding", g.patch_pixels(), g.hidden, true);
  Module layers(c, "transformer");
  t.layers_scope = layers.scope;
  t.blocks = make_layers(g.made(), [&](std::int32_t i) { return make_molmo_block(c, g, i); });
  return t;
}

/// ViTMLP.forward, one expression over its argument.
inline Value molmo_mlp(Context& c, const Molmo2VisionBlock& b, Activation activation, Value arg) {
  const Value x = std::move(arg);
  InScope in(c.b, b.mlp_scope);
  Value inner = forward(c, b.w1, x);
  {
    InScope act(c.b, b.activation_scope);
    inner = activate(c, activation, std::move(inner));
  }
  return forward(c, b.w2, std::move(inner));
}

/// Molmo2VisionBlock.forward: the halves' results are temporaries.
inline Value forward(Context& c, const Molmo2Vision& g, const Molmo2VisionBlock& b, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, b.scope);
  Value normed = forward(c, b.attention_norm, x);
  Value keys = normed;
  Value half = forward(c, b.attention, std::move(normed), std::move(keys), {});
  x = eager::add(x, std::move(half));
  normed = forward(c, b.ffn_norm, x);
  half = molmo_mlp(c, b, g.activation, std::move(normed));
  x = eager::add(x, std::move(half));
  return x;
}

/// Molmo2VisionBackbone.encode_image of crops[N, patches, pixels]: what is read of the layers, joined for each patch,
/// [N, patches, joined]. Every layer's result stays until they are joined; the layers are no class that
/// gradient_checkpointing_enable() knows.
inline Value encode_images(Context& c, const Molmo2Vit& t, const Value& crops) {
  using namespace eager;
  const Molmo2Vision& g = *t.config;
  std::vector<Value> states;
  {
    InScope in(c.b, t.scope);
    Value x = forward(c, t.patch_embedding, crops);
    x = add(x, unsqueeze(Value(c.b, t.positions), 0));
    const Value embedded = x;  // the transformer's variable
    InScope layers(c.b, t.layers_scope);
    LayerRepeater repeat(c.b, false);
    for (std::size_t i = 0; i < t.blocks.size(); ++i) {
      const auto is_read = [&](std::size_t layer) {
        return std::ranges::find(g.read, static_cast<std::int64_t>(layer)) != g.read.end();
      };
      LayerRepeater::Layer place{0, t.blocks[i].scope, t.blocks[i].attention.wq.weight};
      place.input_read_elsewhere = i > 0 && is_read(i - 1);
      x = repeat(place, x, {}, [&](const Value& h) { return forward(c, g, t.blocks[i], h); });
      x = insert_after_layer(c, i, std::move(x), 0);
      states.push_back(x);
    }
  }
  std::vector<Value> features;
  for (const std::int64_t layer : g.read) features.push_back(states[static_cast<std::size_t>(layer)]);
  std::vector<Value> joined = features;  // the list lives beside what is joined
  Value out = cat(joined, -1);
  states.clear();
  return out;
}

}  // namespace vlmest
