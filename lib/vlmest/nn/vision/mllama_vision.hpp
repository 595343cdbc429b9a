// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/gate.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// The tower of Llama 3.2 Vision (transformers models/mllama, MllamaVisionModel): all tiles of a picture in one
/// sequence, a local and a gated global stack of layers, and intermediate hidden states beside the last one as extra
/// channels.
struct MllamaVision {
  std::int64_t hidden = 1280;
  std::int64_t intermediate = 5120;
  std::int64_t layers = 32;
  std::int64_t global_layers = 8;
  std::int64_t heads = 16;
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t max_tiles = 4;
  std::int64_t aspect_ratios = 8;  ///< supported ones; id 0 is padding
  std::vector<std::int64_t> intermediate_layers{3, 7, 15, 23, 30};
  Activation activation = Activation::gelu;

  /// Tokens of a tile, with its class token.
  std::int64_t tile_tokens() const {
    const std::int64_t side = image_size / patch_size;
    return checked_add(checked_mul(side, side), 1);
  }
  /// Channels of the result.
  std::int64_t output() const { return checked_mul(hidden, 1 + static_cast<std::int64_t>(intermediate_layers.size())); }
};

struct MllamaVisionLayer {
  ScopeId scope = 0, attention_scope = 0;
  Linear q, k, v, out;
  Mlp mlp;
  LayerNorm norm1, norm2;
  TensorId gate_attn = none, gate_ffn = none;  ///< of the global layers
};

/// MllamaPrecomputedAspectRatioEmbedding: one vector for each tile position of an aspect ratio.
struct MllamaTileEmbedding {
  ScopeId scope = 0, table_scope = 0;
  TensorId table = none, gate = none;
};

struct MllamaVisionTower {
  const MllamaVision* config = nullptr;
  ScopeId scope = 0, patch_scope = 0, position_scope = 0, tile_table_scope = 0, local_scope = 0, global_scope = 0;
  TensorId patch_weight = none, class_embedding = none;
  TensorId position_gate = none, position_table = none, tile_table = none;
  MllamaTileEmbedding pre_tile, post_tile;
  LayerNorm pre_norm, post_norm;
  std::vector<MllamaVisionLayer> local, global;
};

inline MllamaVisionLayer make_mllama_vision_layer(Context& c, const MllamaVision& g, bool gated, std::int32_t index) {
  Module m(c, "layers", index);
  MllamaVisionLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.q = make_linear(c, "q_proj", g.hidden, g.hidden, false);
    l.k = make_linear(c, "k_proj", g.hidden, g.hidden, false);
    l.v = make_linear(c, "v_proj", g.hidden, g.hidden, false);
    l.out = make_linear(c, "o_proj", g.hidden, g.hidden, false);
  }
  {
    Module p(c, "mlp");
    l.mlp.scope = p.scope;
    l.mlp.activation = g.activation;
    l.mlp.activation_scope = c.b.child("activation_fn");
    l.mlp.fc1 = make_linear(c, "fc1", g.hidden, g.intermediate, true);
    l.mlp.fc2 = make_linear(c, "fc2", g.intermediate, g.hidden, true);
  }
  l.norm1 = make_layer_norm(c, "input_layernorm", g.hidden);
  l.norm2 = make_layer_norm(c, "post_attention_layernorm", g.hidden);
  if (gated) {
    l.gate_attn = parameter(c, "gate_attn", {1});
    l.gate_ffn = parameter(c, "gate_ffn", {1});
  }
  return l;
}

inline MllamaTileEmbedding make_mllama_tile_embedding(Context& c, const char* name, const MllamaVision& g) {
  Module m(c, name);
  MllamaTileEmbedding e{.scope = m.scope};
  {
    Module t(c, "embedding");
    e.table_scope = t.scope;
    e.table = parameter(c, "weight", {g.aspect_ratios + 1, checked_mul(g.max_tiles, g.hidden)});
  }
  e.gate = parameter(c, "gate", {1});
  return e;
}

/// The order of MllamaVisionModel.__init__.
inline MllamaVisionTower make_tower(Context& c, const MllamaVision& g) {
  MllamaVisionTower t{.config = &g, .scope = c.b.scope()};
  {
    Module p(c, "patch_embedding");
    t.patch_scope = p.scope;
    t.patch_weight = parameter(c, "weight", {g.hidden, g.channels, g.patch_size, g.patch_size});
  }
  t.class_embedding = parameter(c, "class_embedding", {g.hidden});
  {
    Module p(c, "gated_positional_embedding");
    t.position_scope = p.scope;
    t.position_gate = parameter(c, "gate", {1});
    t.position_table = parameter(c, "embedding", {g.tile_tokens(), g.hidden});
    Module tile(c, "tile_embedding");
    t.tile_table_scope = tile.scope;
    t.tile_table =
        parameter(c, "weight", {g.aspect_ratios + 1, checked_mul(checked_mul(g.max_tiles, g.tile_tokens()), g.hidden)});
  }
  t.pre_tile = make_mllama_tile_embedding(c, "pre_tile_positional_embedding", g);
  t.post_tile = make_mllama_tile_embedding(c, "post_tile_positional_embedding", g);
  t.pre_norm = make_layer_norm(c, "layernorm_pre", g.hidden);
  t.post_norm = make_layer_norm(c, "layernorm_post", g.hidden);
  {
    Module e(c, "transformer");
    t.local_scope = e.scope;
    for (std::int64_t i = 0; i < g.layers; ++i)
      t.local.push_back(make_mllama_vision_layer(c, g, false, static_cast<std::int32_t>(i)));
  }
  Module e(c, "global_transformer");
  t.global_scope = e.scope;
  for (std::int64_t i = 0; i < g.global_layers; ++i)
    t.global.push_back(make_mllama_vision_layer(c, g, true, static_cast<std::int32_t>(i)));
  return t;
}

/// modeling_mllama.py, MllamaVisionAttention.forward.
inline Attended mllama_vision_attention(Context& c, const MllamaVisionLayer& l, const Value& x, const Value& mask,
                                        std::int64_t heads) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1), head_dim = x.size(2) / heads;
  Value q = forward(c, l.q, x);
  Value k = forward(c, l.k, x);
  Value v = forward(c, l.v, x);
  auto split_heads = [&](Value& y) { y = transpose(view(y, {batch, tokens, heads, head_dim}), 1, 2); };
  split_heads(q);
  split_heads(k);
  split_heads(v);
  Attended a = attend(c, {.q = q, .k = k, .v = v, .mask = mask});
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = forward(c, l.out, a.out);
  return a;
}

/// modeling_mllama.py, MllamaVisionEncoderLayer.forward.
inline Value forward(Context& c, const MllamaVisionLayer& l, const Value& arg, const Value& mask, std::int64_t heads) {
  using namespace eager;
  Value x = arg;
  InScope in(c.b, l.scope);
  const bool gated = l.gate_attn != none;
  Value residual = x;
  x = forward(c, l.norm1, x);
  Attended attended = mllama_vision_attention(c, l, x, mask, heads);  // the weights stay to the end
  x = std::move(attended.out);
  if (gated) x = tanh_gate(c, l.gate_attn, x);
  x = add(residual, x);
  residual = x;
  x = forward(c, l.norm2, x);
  x = forward(c, l.mlp, x);
  if (gated) x = tanh_gate(c, l.gate_ffn, x);
  x = add(residual, x);
  return x;
}

}  // namespace vlmest
