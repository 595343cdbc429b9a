// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/bidirectional_mask.hpp>
#include <vlmest/nn/clipped_linear.hpp>
#include <vlmest/nn/mask_blocks.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/gemma4_pooler.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// Gemma 4's vision tower (transformers 5.17 models/gemma4, Gemma4VisionModel): flattened patches, each image padded to
/// as many as the processor's budget, a table of positions for each axis, heads that turn by column and row, patches
/// averaged by squares.
struct Gemma4Vision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 16;
  std::int64_t heads = 12;
  std::int64_t kv_heads = 12;
  std::int64_t head_dim = 64;
  std::int64_t patch_size = 16;
  std::int64_t pool = 3;           ///< pooling_kernel_size: patches of a square's side
  std::int64_t positions = 10240;  ///< rows of each axis' table
  Activation activation = Activation::gelu_tanh;
  bool attention_dropout = false;  ///< in training mode
  bool clips = false;              ///< use_clipped_linears
  bool standardize = false;
};

/// Gemma4VisionEncoderLayer.
struct Gemma4VisionLayer {
  ScopeId scope = 0, attention_scope = 0, mlp_scope = 0, activation_scope = 0;
  ClippedLinear q, k, v, out;
  RmsNorm q_norm, k_norm, v_norm;
  ClippedLinear gate, up, down;
  RmsNorm input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;
};

struct Gemma4Tower {
  const Gemma4Vision* config = nullptr;
  ScopeId scope = 0, embedder_scope = 0, encoder_scope = 0, pooler_scope = 0;
  Linear patches;
  TensorId table = none;  ///< [2, positions, hidden]
  Rope rope;
  std::vector<Gemma4VisionLayer> layers;
  TensorId std_bias = none, std_scale = none;
};

/// Rows of pixels for each image, padding included.
inline Shape pixel_shape(const Gemma4Vision& g, std::span<const ImageLayout> images) {
  return {static_cast<std::int64_t>(images.size()), images.front().tower_tokens,
          checked_mul(3, checked_mul(g.patch_size, g.patch_size))};
}

/// In the order of Gemma4VisionEncoderLayer.__init__.
inline Gemma4VisionLayer make_gemma4_vision_layer(Context& c, const Gemma4Vision& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "layers", index);
  Gemma4VisionLayer l{.scope = m.scope};
  const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
    return make_clipped_linear(c, name, in, out, g.clips);
  };
  const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.q = linear("q_proj", g.hidden, queries);
    l.k = linear("k_proj", g.hidden, keys);
    l.v = linear("v_proj", g.hidden, keys);
    l.out = linear("o_proj", queries, g.hidden);
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim, kind);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim, kind);
    l.v_norm = make_weightless_norm(c, "v_norm");
  }
  {
    Module f(c, "mlp");
    l.mlp_scope = f.scope;
    l.gate = linear("gate_proj", g.hidden, g.intermediate);
    l.up = linear("up_proj", g.hidden, g.intermediate);
    l.down = linear("down_proj", g.intermediate, g.hidden);
    l.activation_scope = c.b.child("act_fn");
  }
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  l.pre_feedforward_norm = make_rms_norm(c, "pre_feedforward_layernorm", g.hidden, kind);
  l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden, kind);
  return l;
}

/// In the order of Gemma4VisionModel.__init__.
inline Gemma4Tower make_tower(Context& c, const Gemma4Vision& g) {
  Gemma4Tower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "patch_embedder");
    t.embedder_scope = e.scope;
    t.patches = make_linear(c, "input_proj", checked_mul(3, checked_mul(g.patch_size, g.patch_size)), g.hidden, false);
    t.table = parameter(c, "position_embedding_table", {2, g.positions, g.hidden});
  }
  {
    Module e(c, "encoder");
    t.encoder_scope = e.scope;
    t.rope = make_rope(c, "rotary_emb", g.head_dim / 2);
    t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_gemma4_vision_layer(c, g, i); });
  }
  t.pooler_scope = c.b.child("pooler");
  if (g.standardize) {
    t.std_bias = buffer(c, "std_bias", {g.hidden}, c.dtype());
    t.std_scale = buffer(c, "std_scale", {g.hidden}, c.dtype());
  }
  return t;
}

/// Gemma4VisionPatchEmbedder._position_embeddings: the sum of both axes' rows, nothing where there is padding.
inline Value gemma4_positions(Context& c, const Gemma4Tower& t, const Value& position_ids, const Value& padding) {
  using namespace eager;
  const Value clamped = pointwise("clamp", DType::int64, position_ids);
  const auto rows = [&](int axis) {
    return embedding(select(Value(c.b, t.table), 0, axis), select(clamped, -1, axis));
  };
  const Value columns_part = rows(0);
  const Value rows_part = rows(1);
  Value sum = add(columns_part, rows_part);
  Value zero = fill(c.b, "scalar_tensor", Shape{}, sum.dtype());
  sum = where(unsqueeze(padding, -1), std::move(zero), sum);
  return sum;
}

/// Gemma4VisionPatchEmbedder.forward.
inline Value gemma4_patches(Context& c, const Gemma4Tower& t, const Value& pixels, const Value& position_ids,
                            const Value& padding) {
  using namespace eager;
  InScope in(c.b, t.embedder_scope);
  const Value scaled = mul_scalar(sub_scalar(pixels));
  const Value x = forward(c, t.patches, scaled);
  const Value positions = gemma4_positions(c, t, position_ids, padding);
  return add(x, positions);
}

/// masking_utils.py, create_bidirectional_mask over one row of patches for each image: nothing where none is padding.
inline Value padding_mask(Context& c, const Value& real, bool padded) {
  using namespace eager;
  item(reduce("all", DType::boolean, Shape{}, real));
  return padded ? padding_mask(c, real) : Value();
}

/// Gemma4VisionRotaryEmbedding.forward: positions[B, N, 2] -> cos, sin[B, N, head_dim], columns before rows.
inline CosSin gemma4_angles(Context& c, const Rope& r, const Value& position_ids) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const Value at = to(unsqueeze(position_ids, -1), DType::fp32);
  const Autocast off(c.b, std::nullopt);
  const Value angles = matmul_rows(at, unsqueeze(Value(c.b, r.inv_freq), 0));
  Value cosine = mul_scalar(eager::cos(angles));
  Value sine = mul_scalar(eager::sin(angles));
  const auto spread = [](const Value& f) {
    const Value first = select(f, 2, 0), second = select(f, 2, 1);
    std::array<Value, 4> all{first, first, second, second};
    return cat(all, -1);
  };
  cosine = spread(cosine);
  sine = spread(sine);
  CosSin e;
  e.cos = to(cosine, c.dtype());
  e.sin = to(sine, c.dtype());
  return e;
}

/// apply_multidimensional_rope: the first half of each head turns by the first axis, the other by the second.
inline Value rotate_by_axis(const Value& x, const CosSin& e) {
  using namespace eager;
  const std::int64_t half = x.size(-1) / 2;
  const std::array halves{half, half};
  const std::vector<Value> parts = split(x, halves, -1), cos = split(e.cos, halves, -1), sin = split(e.sin, halves, -1);
  std::array<Value, 2> turned;
  for (std::size_t i = 0; i < turned.size(); ++i) {
    const Value c = unsqueeze(cos[i], 2), s = unsqueeze(sin[i], 2);
    turned[i] = rotate(parts[i], c, s);
  }
  return cat(turned, -1);
}

/// Gemma4VisionAttention.forward.
inline Attended forward_attention(Context& c, const Gemma4Vision& g, const Gemma4VisionLayer& l, const Value& x,
                                  const Value& mask, const CosSin& positions) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const auto heads = [&](const ClippedLinear& p) { return view(forward(c, p, x), {batch, tokens, -1, g.head_dim}); };
  Value q = heads(l.q);
  q = forward(c, l.q_norm, q);
  q = rotate_by_axis(q, positions);
  q = transpose(q, 1, 2);
  Value k = heads(l.k);
  k = forward(c, l.k_norm, k);
  k = rotate_by_axis(k, positions);
  k = transpose(k, 1, 2);
  Value v = heads(l.v);
  v = forward(c, l.v_norm, v);
  v = transpose(v, 1, 2);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .dropout = g.attention_dropout});
  a.out = contiguous(reshape(a.out, {batch, tokens, -1}));
  a.out = forward(c, l.out, a.out);
  return a;
}

/// Gemma4VisionMLP.forward, one expression.
inline Value forward_mlp(Context& c, const Gemma4Vision& g, const Gemma4VisionLayer& l, const Value& x) {
  InScope in(c.b, l.mlp_scope);
  Value gate = forward(c, l.gate, x);
  {
    InScope a(c.b, l.activation_scope);
    gate = activate(c, g.activation, std::move(gate));
  }
  Value up = forward(c, l.up, x);
  return forward(c, l.down, eager::mul(std::move(gate), std::move(up)));
}

/// Gemma4VisionEncoderLayer.forward.
inline Value forward(Context& c, const Gemma4Vision& g, const Gemma4VisionLayer& l, Value arg, const Value& mask,
                     const CosSin& positions) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return forward_attention(c, g, l, x, mask, positions); }, l.pre_feedforward_norm,
      [&](const Value& x) { return forward_mlp(c, g, l, x); },
      [&](Value& x) { x = forward(c, l.post_attention_norm, x); },
      [&](Value& x) { x = forward(c, l.post_feedforward_norm, x); });
}

/// Gemma4VisionEncoder.forward.
inline Value gemma4_encoder(Context& c, const Gemma4Tower& t, const Value& embedded, const Value& real, bool padded,
                            const Value& position_ids) {
  InScope in(c.b, t.encoder_scope);
  const Value mask = padding_mask(c, real, padded);
  Value x = embedded;
  const CosSin positions = gemma4_angles(c, t.rope, position_ids);
  LayerRepeater repeat(c.b);
  repeat.pass(position_ids);
  for (const Gemma4VisionLayer& l : t.layers)
    x = repeat({0, l.scope, l.q.linear.weight}, x, {},
               [&](const Value& h) { return forward(c, *t.config, l, h, mask, positions); });
  return x;
}

/// Gemma4VisionModel.forward: pixels[images, patches, 3 patch^2], position_ids[images, patches, 2], -1 where there is
/// padding -> features[features of all images, hidden].
inline Value forward(Context& c, const Gemma4Tower& t, const Value& pixels, const Value& position_ids,
                     std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.scope);
  std::int64_t features = 0;
  bool padded = false;
  for (const auto& i : images) {
    features = checked_add(features, i.llm_tokens);
    padded = padded || i.patches.count() < i.tower_tokens;
  }
  const Shape rows{pixels.size(0), pixels.size(1)};
  const Value padding = reduce("all.dim", DType::boolean, rows, compare_scalar("eq.Scalar", position_ids));
  const Value embedded = gemma4_patches(c, t, pixels, position_ids, padding);
  Value output;
  {
    const Value real = pointwise("bitwise_not", DType::boolean, padding);
    output = gemma4_encoder(c, t, embedded, real, padded, position_ids);
  }
  Pooled pooled;
  {
    InScope p(c.b, t.pooler_scope);
    pooled = pool_by_positions(c, output, position_ids, padding, t.config->pool);
  }
  Value x = std::move(pooled.features);
  x = masked_index(x, pooled.mask, features);
  if (t.std_bias != none) {
    Value centred = sub(x, to(Value(c.b, t.std_bias), DType::fp32));
    x = mul(std::move(centred), to(Value(c.b, t.std_scale), DType::fp32));
  }
  return to(x, embedded.dtype());
}

}  // namespace vlmest
