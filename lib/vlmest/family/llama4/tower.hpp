// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/nn/complex_rope.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/projector/pixel_shuffle.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/tower_layers.hpp>

namespace vlmest {

/// Llama 4's vision tower (transformers models/llama4, Llama4VisionModel): patches unfolded and projected, a class
/// token behind them, rotary positions of rows and columns, squares of patches folded into channels and two linear
/// layers. Defaults: Llama4VisionConfig. Its activations are gelu whatever hidden_act says.
struct Llama4Vision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 5632;
  std::int64_t layers = 34;
  std::int64_t heads = 16;
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t output = 7680;                ///< vision_output_dim: what the model's projector takes
  std::int64_t merge = 2;                    ///< 1 / pixel_shuffle_ratio
  std::int64_t adapter_in = 4096;            ///< projector_input_dim
  std::int64_t adapter_out = 4096;           ///< projector_output_dim
  bool attention_dropout = false;            ///< in training mode
  bool adapter_dropout = false;              ///< projector_dropout, in training mode
  Activation activation = Activation::gelu;  ///< named by the config, not used

  std::int64_t side() const { return image_size / patch_size; }
  std::int64_t tokens() const { return checked_add(checked_mul(side(), side()), 1); }
  std::int64_t head_dim() const { return hidden / heads; }
};

struct Llama4VisionLayer {
  ScopeId scope = 0;
  Projections attention;
  Mlp mlp;
  LayerNorm input_norm, post_attention_norm;
};

struct Llama4Tower {
  const Llama4Vision* config = nullptr;
  ScopeId scope = 0, patch_scope = 0, unfold_scope = 0, adapter_scope = 0;
  Linear patches;
  TensorId class_embedding = none;  ///< [hidden]
  TensorId positions = none;        ///< [patches + 1, hidden]
  TensorId turns = none;            ///< complex64[patches + 1, 1, head_dim / 2]
  LayerNorm pre_norm, post_norm;
  std::vector<Llama4VisionLayer> layers;
  Mlp adapter;
};

/// In the order of Llama4VisionEncoderLayer.__init__.
inline Llama4VisionLayer make_llama4_vision_layer(Context& c, const Llama4Vision& g, std::int32_t index) {
  Module m(c, "layers", index);
  Llama4VisionLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, {.hidden = g.hidden, .qkv_bias = true, .out_bias = true});
  }
  l.mlp = make_mlp(c, g.hidden, g.intermediate, Activation::gelu);
  l.input_norm = make_layer_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_layer_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}
inline TensorId first_parameter(const Llama4VisionLayer& l) { return l.attention.first(); }

/// In the order of Llama4VisionModel.__init__.
inline Llama4Tower make_tower(Context& c, const Llama4Vision& g) {
  Llama4Tower t{.config = &g, .scope = c.b.scope()};
  {
    Module p(c, "patch_embedding");
    t.patch_scope = p.scope;
    t.unfold_scope = c.b.child("unfold");
    t.patches =
        make_linear(c, "linear", checked_mul(g.channels, checked_mul(g.patch_size, g.patch_size)), g.hidden, false);
  }
  t.class_embedding = parameter(c, "class_embedding", {g.hidden});
  t.positions = parameter(c, "positional_embedding_vlm", {g.tokens(), g.hidden});
  {
    Module r(c, "rotary_embedding");
    t.turns = buffer(c, "freqs_ci", {g.tokens(), 1, g.head_dim() / 4 * 2}, DType::complex64);
  }
  t.pre_norm = make_layer_norm(c, "layernorm_pre", g.hidden);
  t.post_norm = make_layer_norm(c, "layernorm_post", g.hidden);
  {
    Module m(c, "model");
    t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_llama4_vision_layer(c, g, i); });
  }
  Module a(c, "vision_adapter");
  t.adapter_scope = a.scope;
  Module m(c, "mlp");
  t.adapter.scope = m.scope;
  t.adapter.fc1 = make_linear(c, "fc1", g.intermediate, g.adapter_in, false);
  t.adapter.fc2 = make_linear(c, "fc2", g.adapter_out, g.adapter_out, false);
  t.adapter.activation_scope = c.b.child("activation_fn");
  return t;
}

/// modeling_llama4.py, Llama4VisionAttention.forward. turns: complex64[1, S, 1, D / 2].
inline Attended llama4_vision_attention(Context& c, const Llama4Vision& g, const Llama4VisionLayer& l, Value arg,
                                        const Value& turns) {
  using namespace eager;
  const Value x = std::move(arg);
  InScope in(c.b, l.attention.scope);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {x.size(0), x.size(1), -1, g.head_dim()}); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  Value v = heads(l.attention.v);
  turn_pairs(c, q, k, turns);
  for (Value* y : {&q, &k, &v}) *y = transpose(std::move(*y), 1, 2);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .dropout = g.attention_dropout, .fp32_softmax = false});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_llama4.py, Llama4VisionEncoderLayer.forward.
inline Value forward(Context& c, const Llama4Vision& g, const Llama4VisionLayer& l, Value arg, const Value& turns) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return llama4_vision_attention(c, g, l, x, turns); }, l.post_attention_norm,
      [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// modeling_llama4.py, Llama4UnfoldConvolution.forward: pixels[N, C, H, W] -> [N, patches, hidden].
inline Value unfolded_patches(Context& c, const Llama4Tower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.patch_scope);
  Value x;
  {
    InScope u(c.b, t.unfold_scope);
    x = im2col(pixels, t.config->patch_size);
  }
  x = permute(x, {0, 2, 1});
  x = forward(c, t.patches, x);
  return x;
}

/// modeling_llama4.py, Llama4VisionPixelShuffleMLP.forward and Llama4VisionMLP2.forward: [N, patches, hidden] -> [N,
/// patches / merge^2, adapter_out].
inline Value forward_adapter(Context& c, const Llama4Tower& t, const Value& x) {
  using namespace eager;
  const Llama4Vision& g = *t.config;
  InScope in(c.b, t.adapter_scope);
  Value folded = pixel_shuffle(view(x, {x.size(0), g.side(), g.side(), -1}), g.merge);
  folded = view(folded, {x.size(0), -1, folded.size(3)});
  InScope m(c.b, t.adapter.scope);
  const auto gelu = [&](const Value& y) {
    InScope a(c.b, t.adapter.activation_scope);
    return activate(c, Activation::gelu, y);
  };
  Value y = forward(c, t.adapter.fc1, folded);
  y = gelu(y);
  if (g.adapter_dropout) y = dropout(c, y);
  return gelu(forward(c, t.adapter.fc2, y));
}

/// modeling_llama4.py, Llama4VisionModel.forward: pixels[N, C, H, W] -> [N, patches / merge^2, adapter_out].
inline Value forward(Context& c, const Llama4Tower& t, const Value& pixels) {
  using namespace eager;
  const Llama4Vision& g = *t.config;
  InScope in(c.b, t.scope);
  const std::int64_t tiles = pixels.size(0);
  Value x = input_embedding(c, unfolded_patches(c, t, pixels));
  {
    const Value cls = expand(Value(c.b, t.class_embedding), {tiles, 1, -1});
    x = cat(x, cls, 1);
  }
  x = reshape(x, {tiles, 1, g.tokens(), g.hidden});
  x = add(x, Value(c.b, t.positions));
  x = forward(c, t.pre_norm, x);
  x = view(x, {tiles, -1, g.hidden});
  const Value turns = view(Value(c.b, t.turns), {1, g.tokens(), 1, -1});
  Value last = x;  // the encoder's result stays with what it returned
  LayerRepeater repeat(c.b);
  for (const Llama4VisionLayer& l : t.layers)
    last =
        repeat({0, l.scope, first_parameter(l)}, last, {}, [&](const Value& h) { return forward(c, g, l, h, turns); });
  x = last;
  x = forward(c, t.post_norm, x);
  x = slice(x, 1, 0, x.size(1) - 1);
  return forward_adapter(c, t, x);
}

}  // namespace vlmest
