// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>

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
  ScopeId scope = 0;
  Projections attention;
  Mlp mlp;
  LayerNorm norm1, norm2;
  TensorId gate_attn = none, gate_ffn = none;  ///< of the global layers
};

/// MllamaPrecomputedAspectRatioEmbedding: one vector for each tile position of an aspect ratio.
struct MllamaTileEmbedding {
  ScopeId scope = 0;
  Embedding table;
  TensorId gate = none;
};

struct MllamaVisionTower {
  const MllamaVision* config = nullptr;
  ScopeId scope = 0, position_scope = 0, local_scope = 0, global_scope = 0;
  PatchConv patches;
  TensorId class_embedding = none, position_gate = none, position_table = none;
  Embedding tile_table;
  MllamaTileEmbedding pre_tile, post_tile;
  LayerNorm pre_norm, post_norm;
  std::vector<MllamaVisionLayer> local, global;
};

inline MllamaVisionLayer make_mllama_vision_layer(Context& c, const MllamaVision& g, bool gated, std::int32_t index) {
  Module m(c, "layers", index);
  MllamaVisionLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, {.hidden = g.hidden});
  }
  l.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
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
  e.table = make_embedding(c, "embedding", g.aspect_ratios + 1, checked_mul(g.max_tiles, g.hidden));
  e.gate = parameter(c, "gate", {1});
  return e;
}

/// The order of MllamaVisionModel.__init__.
inline MllamaVisionTower make_tower(Context& c, const MllamaVision& g) {
  MllamaVisionTower t{.config = &g, .scope = c.b.scope()};
  t.patches = make_patch_conv(c, "patch_embedding", g, false);
  t.class_embedding = parameter(c, "class_embedding", {g.hidden});
  {
    Module p(c, "gated_positional_embedding");
    t.position_scope = p.scope;
    t.position_gate = parameter(c, "gate", {1});
    t.position_table = parameter(c, "embedding", {g.tile_tokens(), g.hidden});
    t.tile_table = make_embedding(c, "tile_embedding", g.aspect_ratios + 1,
                                  checked_mul(checked_mul(g.max_tiles, g.tile_tokens()), g.hidden));
  }
  t.pre_tile = make_mllama_tile_embedding(c, "pre_tile_positional_embedding", g);
  t.post_tile = make_mllama_tile_embedding(c, "post_tile_positional_embedding", g);
  t.pre_norm = make_layer_norm(c, "layernorm_pre", g.hidden);
  t.post_norm = make_layer_norm(c, "layernorm_post", g.hidden);
  {
    Module e(c, "transformer");
    t.local_scope = e.scope;
    t.local = make_layers(g.layers, [&](std::int32_t i) { return make_mllama_vision_layer(c, g, false, i); });
  }
  Module e(c, "global_transformer");
  t.global_scope = e.scope;
  t.global = make_layers(g.global_layers, [&](std::int32_t i) { return make_mllama_vision_layer(c, g, true, i); });
  return t;
}

/// modeling_mllama.py, MllamaVisionAttention.forward.
inline Attended mllama_vision_attention(Context& c, const MllamaVisionLayer& l, const Value& x, const Value& mask,
                                        std::int64_t heads) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Qkv y = project(c, l.attention, x);
  split_heads(y, x.size(2) / heads);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_mllama.py, MllamaVisionEncoderLayer.forward.
inline Value forward(Context& c, const MllamaVisionLayer& l, const Value& arg, const Value& mask, std::int64_t heads) {
  const bool gated = l.gate_attn != none;
  return pre_norm_layer(
      c, l.scope, arg, l.norm1, [&](const Value& x) { return mllama_vision_attention(c, l, x, mask, heads); }, l.norm2,
      [&](const Value& x) { return forward(c, l.mlp, x); },
      [&](Value& x) {
        if (gated) x = stacks::tanh_gate(c, l.gate_attn, x);
      },
      [&](Value& x) {
        if (gated) x = stacks::tanh_gate(c, l.gate_ffn, x);
      });
}

}  // namespace vlmest
