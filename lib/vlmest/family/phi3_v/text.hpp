// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/phi3_v/mask.hpp>
#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/rope.hpp>

namespace vlmest {

/// The language model of Phi-3-vision (modeling_phi3_v.py, Phi3VModel): queries, keys and values of one linear, gate
/// and up of another, attention written out, angles computed anew in every layer. Defaults: Phi3VConfig.
struct Phi3VText {
  enum class Rope : std::uint8_t { plain, su, yarn };
  std::int64_t vocab = 32064;
  std::int64_t hidden = 3072;
  std::int64_t intermediate = 8192;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t head_dim = 96;
  Activation activation = Activation::silu;
  Rope rope = Rope::plain;             ///< rope_scaling
  std::optional<std::int64_t> window;  ///< sliding_window: of the mask alone
};

struct Phi3VLayer {
  ScopeId scope = 0, attention_scope = 0, rotary_scope = 0;
  Linear qkv, out;
  TensorId inv_freq = none;  ///< a buffer that the first call makes, and with a scaling every call anew
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
};

struct Phi3VDecoder {
  const Phi3VText* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Phi3VLayer> layers;
  RmsNorm norm;
};

inline std::int64_t vocabulary(const Phi3VText& g) { return g.vocab; }
inline std::int64_t width(const Phi3VText& g) { return g.hidden; }
/// DynamicCache without a config: the window is the mask's.
inline Cache make_cache(const Phi3VText& g) { return empty_cache(g.layers); }

/// In the order of Phi3DecoderLayer.__init__ and Phi3Attention.__init__.
inline Phi3VLayer make_phi3v_layer(Context& c, const Phi3VText& g, std::int32_t index) {
  Module m(c, "layers", index);
  Phi3VLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
    l.attention_scope = a.scope;
    l.out = make_linear(c, "o_proj", queries, g.hidden, false);
    l.qkv = make_linear(c, "qkv_proj", g.hidden, checked_add(queries, checked_mul(keys, 2)), false);
    Module r(c, "rotary_emb");
    l.rotary_scope = r.scope;
    l.inv_freq = buffer(c, "inv_freq", {g.head_dim / 2}, DType::fp32);
  }
  l.mlp = make_packed_mlp(c, "mlp", g.hidden, g.intermediate, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}

/// Phi3SuScaledRotaryEmbedding.forward and Phi3YarnScaledRotaryEmbedding.forward, their first half: factors of the
/// host make frequencies that take the buffer's place. Which of two lists they are of, the length says, which "su" is
/// handed and "yarn" asks the device for. The graph keeps the buffer, which is as large. Gives what the function's
/// variables hold.
inline std::vector<Value> scale_frequencies(Context& c, const Phi3VText& g, const Value& positions) {
  using namespace eager;
  const Shape half{g.head_dim / 2};
  Value length;
  if (g.rope == Phi3VText::Rope::yarn) {
    length = add_scalar(reduce("max", DType::int64, Shape{}, positions));
    item(compare_scalar("gt.Scalar", length));
  }
  const Value factors = from_host(c.b, half, DType::fp32);
  Value steps = to(fill(c.b, "arange.start_step", half, DType::int64), DType::fp32);
  const Value exponents = div_scalar(std::move(steps));
  const Value stretched = mul(factors, scalar_pow(exponents));
  Value turns = pointwise("reciprocal", DType::fp32, stretched);
  mul_scalar(std::move(turns));
  return {length, factors, exponents};
}

/// Phi3RotaryEmbedding.forward and its scaled heirs': positions[1, S] -> cos, sin[1, S, head_dim].
inline CosSin phi3v_angles(Context& c, const Phi3VText& g, const Phi3VLayer& l, const Value& positions) {
  using namespace eager;
  InScope in(c.b, l.rotary_scope);
  const bool scales = g.rope != Phi3VText::Rope::plain;
  std::vector<Value> held;
  if (scales) held = scale_frequencies(c, g, positions);
  const Value inv = unsqueeze(unsqueeze(Value(c.b, l.inv_freq), 0), 2);
  const Value pos = to(unsqueeze(positions, 1), DType::fp32);
  const Value freqs = transpose(matmul(inv, pos), 1, 2);
  const Value angles = cat(freqs, freqs, -1);
  const auto scaled = [&](Value v) { return scales ? mul_scalar(std::move(v)) : v; };
  const Value cosine = scaled(cos(angles)), sine = scaled(sin(angles));
  CosSin out;
  out.cos = to(cosine, c.dtype());
  out.sin = to(sine, c.dtype());
  return out;
}

/// Phi3Attention.forward: attention written out, whose every result is a variable until the next one takes its place.
inline Value self_attention(Context& c, const Phi3VText& g, const Phi3VLayer& l, const Value& x, const Value& mask,
                            const Value& position_ids, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1), groups = g.heads / g.kv_heads;
  const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
  const Value qkv = forward(c, l.qkv, x);
  Value q = slice(qkv, -1, 0, queries);
  Value k = slice(qkv, -1, queries, queries + keys);
  Value v = slice(qkv, -1, queries + keys, queries + 2 * keys);
  for (Value* y : {&q, &k, &v}) *y = transpose(view(std::move(*y), {batch, tokens, -1, g.head_dim}), 1, 2);
  const CosSin angles = phi3v_angles(c, g, l, position_ids);
  apply_rope(c, q, k, angles);
  update(c, cache, k, v);
  Value out;
  if (c.attention() == AttentionKind::flash) {
    out = flash_attention(c, {.q = q, .k = k, .v = v, .causal = true});
    out = reshape(out, {batch, tokens, g.hidden});
    return forward(c, l.out, out);
  }
  k = repeat_kv(k, groups);
  v = repeat_kv(v, groups);
  Value weights = div_scalar(matmul(q, transpose(k, 2, 3)));
  if (mask) weights = add(weights, mask);
  weights = to(softmax(weights, DType::fp32), v.dtype());
  out = matmul(weights, v);
  out = contiguous(transpose(out, 1, 2));
  out = reshape(out, {batch, tokens, g.hidden});
  out = forward(c, l.out, out);
  return out;
}

/// Phi3DecoderLayer.forward: what attention gives has a variable of its own, which stays to the end.
inline Value forward(Context& c, const Phi3VText& g, const Phi3VLayer& l, Value arg, const Value& mask,
                     const Value& position_ids, CacheLayer& cache) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  const Value attended = self_attention(c, g, l, x, mask, position_ids, cache);
  x = eager::add(residual, attended);
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  x = forward(c, l.mlp, x);
  x = eager::add(residual, x);
  return x;
}

/// Phi3VModel.forward of the positions that its caller made and the embeddings: normed hidden states.
inline Value forward(Context& c, const Phi3VDecoder& d, const Value& embeds, const Value& attention_mask,
                     const Value& position_ids, Cache& cache) {
  const Phi3VText& g = *d.config;
  const std::int64_t tokens = embeds.size(1), seen = cache.layers.front().seen;
  if (g.window && checked_add(seen, tokens) > *g.window)
    throw Error("plan.seq",
                std::to_string(seen + tokens) + " tokens are more than sliding_window, " + std::to_string(*g.window) +
                    ", which was not compared with Phi-3-vision's own code",
                "give a shorter sequence");
  const Value mask = phi3v_mask(c, attention_mask, tokens, g.window.has_value());
  Value x = embeds;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Phi3VLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.out.weight}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, position_ids, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
