// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/attention.hpp>
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
  ScopeId scope = 0, attention_scope = 0;
  TensorId probe = none, in_weight = none, in_bias = none;
  Linear out;
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
  {
    Module a(c, "attention");
    h.attention_scope = a.scope;
    h.in_weight = parameter(c, "in_proj_weight", {checked_mul(g.hidden, 3), g.hidden});
    h.in_bias = parameter(c, "in_proj_bias", {checked_mul(g.hidden, 3)});
    Module o(c, "out_proj");
    h.out = declare_linear(c, g.hidden, g.hidden, true, StoredModule::fixed);
  }
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

/// torch.nn.MultiheadAttention of probe[B, 1, E] over tokens[B, L, E], batch first. Queries and tokens differ, so it
/// takes the written-out path, and as its weights are asked for (and then dropped), that one forms them (torch 2.11,
/// torch/nn/functional.py, _in_projection_packed and multi_head_attention_forward). A mask is additive, [B * heads, 1,
/// L].
inline Value pooling_attention(Context& c, const SiglipHead& h, std::int64_t heads, const Value& probe,
                               const Value& tokens, const Value& mask = {}) {
  using namespace eager;
  InScope in(c.b, h.attention_scope);
  const std::int64_t batch = tokens.size(0), length = tokens.size(1), width = tokens.size(2), head_dim = width / heads;
  auto part = [&](TensorId t, std::int64_t from, std::int64_t to) { return slice(Value(c.b, t), 0, from, to); };
  Value q = linear(transpose(probe, 1, 0), part(h.in_weight, 0, width), part(h.in_bias, 0, width));
  Value kv = linear(transpose(tokens, 1, 0), part(h.in_weight, width, 3 * width), part(h.in_bias, width, 3 * width));
  kv = view(kv, {length, batch, 2, width});
  kv = contiguous(squeeze(transpose(unsqueeze(kv, 0), 0, -2), -2));
  Value k = select(kv, 0, 0), v = select(kv, 0, 1);
  kv.reset();
  if (!c.stack().written_out_multihead_attention) {
    auto by_head = [&](Value& x) { x = permute(view(x, {x.size(0), batch, heads, head_dim}), {1, 2, 0, 3}); };
    by_head(q);
    by_head(k);
    by_head(v);
    Value out = reshape(stacks::attend(c, {q, k, v, {}, false}).out, {batch, width});
    return view(linear(std::move(out), Value(c.b, h.out.weight), Value(c.b, h.out.bias)), {batch, 1, width});
  }
  auto fold_heads = [&](Value& x) { x = transpose(view(x, {x.size(0), batch * heads, head_dim}), 0, 1); };
  fold_heads(q);
  fold_heads(k);
  fold_heads(v);
  Value scaled = mul_scalar(q);
  Value weights = mask ? baddbmm(mask, scaled, transpose(k, -2, -1)) : matmul(scaled, transpose(k, -2, -1));
  weights = softmax(weights);
  Value out = matmul(weights, v);
  out = view(contiguous(transpose(out, 0, 1)), {batch, width});
  out = linear(out, Value(c.b, h.out.weight), Value(c.b, h.out.bias));
  out = view(out, {1, batch, width});
  weights = view(weights, {batch, heads, 1, length});
  weights = mean(weights, 1, false);
  return transpose(out, 1, 0);
}

/// modeling_siglip.py, SiglipMultiheadAttentionPoolingHead.forward; `mask_of(probe)` gives the mask of its attention,
/// where there is one.
template <class MaskOf>
Value pool(Context& c, const SiglipHead& h, std::int64_t heads, const Value& tokens, MaskOf&& mask_of) {
  using namespace eager;
  InScope in(c.b, h.scope);
  Value probe = repeat(Value(c.b, h.probe), {tokens.size(0), 1, 1});
  const Value mask = mask_of(probe);
  Value x = pooling_attention(c, h, heads, probe, tokens, mask);
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
