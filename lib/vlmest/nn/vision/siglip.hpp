// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/multihead_attention.hpp>
#include <vlmest/nn/vision/clip.hpp>

namespace vlmest {

/// SigLIP's vision transformer (transformers models/siglip, SiglipVisionModel): no class token, a biased patch
/// convolution, a final norm over all tokens, and an attention pooling head unless the config switches it off.
struct SiglipVision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  Activation activation = Activation::gelu_tanh;
  bool head = true;  ///< vision_use_head
};

/// SiglipMultiheadAttentionPoolingHead: one probe attends over the tokens.
struct SiglipHead {
  ScopeId scope = 0;
  TensorId probe = none;
  MultiheadAttention attention;
  LayerNorm norm;
  Mlp mlp;
};

struct SiglipTower {
  const SiglipVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  TensorId position_ids = none;
  std::vector<ClipLayer> layers;
  LayerNorm post_norm;
  SiglipHead head;
};

/// Of a config with `hidden`, `intermediate` and `activation`.
template <class Vision>
SiglipHead make_siglip_head(Context& c, const Vision& g) {
  Module m(c, "head");
  SiglipHead h{.scope = m.scope};
  h.probe = parameter(c, "probe", {1, 1, g.hidden});
  h.attention = make_multihead_attention(c, "attention", g.hidden);
  h.norm = make_layer_norm(c, "layernorm", g.hidden);
  h.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
  return h;
}

inline SiglipTower make_tower(Context& c, const SiglipVision& g) {
  SiglipTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size, positions = checked_mul(side, side);
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.positions = make_embedding(c, "position_embedding", positions, g.hidden);
    t.position_ids = buffer(c, "position_ids", {1, positions}, DType::int64);
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) {
      return make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, true);
    });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  if (g.head) t.head = make_siglip_head(c, g);
  return t;
}

/// modeling_siglip.py, SiglipVisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, patches, hidden].
inline Value siglip_embeddings(Context& c, const SiglipTower& t, const Value& pixels) {
  InScope in(c.b, t.embeddings_scope);
  const Value patches = patch_sequence(input_embedding(c, forward(c, t.patches, pixels)));
  Value positions = forward(c, t.positions, Value(c.b, t.position_ids));
  return eager::add(patches, std::move(positions));
}

/// torch.nn.MultiheadAttention of probe[B, 1, E] over tokens[B, L, E], which are keys and values: both come out of one
/// product (torch 2.11, torch/nn/functional.py, _in_projection_packed). A mask is additive, [B * heads, 1, L], or the
/// boolean key_padding_mask[B, L], which becomes one.
inline Value pooling_attention(Context& c, const SiglipHead& h, std::int64_t heads, const Value& probe,
                               const Value& tokens, const Value& given = {}) {
  using namespace eager;
  const MultiheadAttention& a = h.attention;
  InScope in(c.b, a.scope);
  const std::int64_t batch = tokens.size(0), length = tokens.size(1), width = tokens.size(2);
  Value of_keys, mask = given;
  if (given && given.dtype() == DType::boolean) {
    Value zeros = zeros_like(given, tokens.dtype());
    of_keys = masked_fill_(std::move(zeros), given);
  }
  auto part = [&](TensorId t, std::int64_t from, std::int64_t to) { return slice(Value(c.b, t), 0, from, to); };
  Value q = linear(transpose(probe, 1, 0), part(a.in_weight, 0, width), part(a.in_bias, 0, width));
  Value kv = linear(transpose(tokens, 1, 0), part(a.in_weight, width, 3 * width), part(a.in_bias, width, 3 * width));
  kv = view(kv, {length, batch, 2, width});
  kv = contiguous(squeeze(transpose(unsqueeze(kv, 0), 0, -2), -2));
  Value k = select(kv, 0, 0), v = select(kv, 0, 1);
  kv.reset();
  if (of_keys) mask = reshape(expand(view(of_keys, {batch, 1, 1, length}), {batch, heads, 1, length}), {-1, 1, length});
  return projected_attention(c, a, heads, std::move(q), std::move(k), std::move(v), mask).out;
}

/// modeling_siglip.py, SiglipMultiheadAttentionPoolingHead.forward; `mask_of(probe)` gives the mask of its attention,
/// where there is one: a variable of the function, or an argument, where it is boolean.
template <class MaskOf>
Value pool(Context& c, const SiglipHead& h, std::int64_t heads, const Value& tokens, MaskOf&& mask_of) {
  using namespace eager;
  InScope in(c.b, h.scope);
  Value probe = repeat(Value(c.b, h.probe), {tokens.size(0), 1, 1});
  Value mask = mask_of(probe);
  Value x = pooling_attention(c, h, heads, probe, tokens, mask);
  if (mask && mask.dtype() == DType::boolean) mask.reset();
  Value residual = x;
  x = forward(c, h.norm, x);
  Value y = forward(c, h.mlp, x);
  x = add(residual, std::move(y));
  return select(x, 1, 0);
}

/// modeling_siglip.py, SiglipVisionModel.forward.
inline TowerOutput forward(Context& c, const SiglipTower& t, const TowerInput& input) {
  InScope in(c.b, t.scope);
  TowerOutput out;
  const Value embedded = siglip_embeddings(c, t, input.pixels);
  const Value last = run_layers(c, t.layers, embedded, 0, input, out,
                                [&](const ClipLayer& l, const Value& h) { return forward(c, l, h, t.config->heads); });
  out.last = forward(c, t.post_norm, last);
  if (t.config->head) out.pooled = pool(c, t.head, t.config->heads, out.last, [](const Value&) { return Value(); });
  return out;
}

}  // namespace vlmest
