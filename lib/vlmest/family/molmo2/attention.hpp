// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/graph/eager/attention.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// Sizes of a ViTMultiHeadDotProductAttention (allenai/molmo2 olmo/hf_model/modeling_molmo2.py): as many heads of keys
/// as of queries.
struct Molmo2AttentionConfig {
  std::int64_t in = 1152;  ///< channels of what it reads; it writes heads * head_dim
  std::int64_t heads = 16;
  std::int64_t head_dim = 72;
  bool wide = true;  ///< float32_attention: queries and keys meet in fp32

  std::int64_t width() const { return checked_mul(heads, head_dim); }
};

struct Molmo2Attention {
  Molmo2AttentionConfig config;
  ScopeId scope = 0;
  Linear wq, wk, wv, wo;
};

inline Molmo2Attention make_molmo_attention(Context& c, const char* name, const Molmo2AttentionConfig& g,
                                            Part part = Part::vision) {
  Module m(c, name, part);
  Molmo2Attention a{.config = g, .scope = m.scope};
  a.wq = make_linear(c, "wq", g.in, g.width(), true);
  a.wk = make_linear(c, "wk", g.in, g.width(), true);
  a.wv = make_linear(c, "wv", g.in, g.width(), true);
  a.wo = make_linear(c, "wo", g.width(), g.width(), true);
  return a;
}

/// torch.einsum("...qhd,...khd->...hqk") and ("...hqk,...khd->...qhd"): both operands stand as stacks of matrices by
/// batch and head, which copies what has its heads inside (aten/src/ATen/native/Linear.cpp, sumproduct_pair).
inline Value einsum_heads(Value a, Value b, bool of_weights) {
  using namespace eager;
  const std::int64_t batch = a.size(0), heads = a.size(of_weights ? 1 : 2);
  const auto stacked = [&](Value x, bool by_heads) {
    if (!by_heads) x = permute(std::move(x), {0, 2, 1, 3});
    const Shape s{checked_mul(batch, heads), x.size(2), x.size(3)};
    return reshape(std::move(x), s);
  };
  Value left = stacked(std::move(a), of_weights);
  Value right = stacked(std::move(b), false);
  if (!of_weights) right = transpose(std::move(right), 1, 2);
  Value out = bmm(std::move(left), std::move(right));
  const std::int64_t rows = out.size(1), cols = out.size(2);
  out = view(std::move(out), {batch, heads, rows, cols});
  return of_weights ? permute(std::move(out), {0, 2, 1, 3}) : out;
}

/// What torch's kernel, or the module itself, makes of heads[N, S, H, D]. Eager attention does not read the mask.
/// Throws Error where torch refuses what the module hands over.
inline Value molmo_attend(Context& c, const Molmo2AttentionConfig& g, const Value& q, const Value& k, Value& v,
                          const Value& mask) {
  using namespace eager;
  if (c.attention() == AttentionKind::eager) {
    Value scaled = div_scalar(q);
    Value weights = einsum_heads(std::move(scaled), k, false);
    weights = softmax(std::move(weights), DType::fp32);
    weights = to(std::move(weights), q.dtype());
    Value cast = to(weights, v.dtype());
    return einsum_heads(std::move(cast), v, true);
  }
  if (c.attention() == AttentionKind::sdpa) {
    if (!g.wide && is_half(q.dtype()))
      throw Error("float32_attention",
                  "false: the module makes values fp32 beside queries and keys that are not, which torch refuses",
                  "give plan.attention=eager or plan.dtype=fp32, or a config with float32_attention true");
    v = to(std::move(v), DType::fp32);
  }
  const auto by_heads = [](const Value& x) { return contiguous(transpose(x, 1, 2)); };
  Value heads_q = by_heads(q);
  Value heads_k = by_heads(k);
  Value heads_v = by_heads(v);
  if (c.attention() == AttentionKind::flash)  // a stack's own kernel
    return stacks::attend(c, {.q = std::move(heads_q), .k = std::move(heads_k), .v = std::move(heads_v)}).out;
  Value out = scaled_dot_product_attention(heads_q, heads_k, heads_v, mask, false);
  return transpose(std::move(out), 1, 2);
}

/// ViTMultiHeadDotProductAttention.forward of queries[N, Q, in] over keys[N, K, in], both of which live through it.
inline Value forward(Context& c, const Molmo2Attention& a, Value queries, Value keys, const Value& mask) {
  using namespace eager;
  const Value inputs_q = std::move(queries), inputs_kv = std::move(keys);
  InScope in(c.b, a.scope);
  const Molmo2AttentionConfig& g = a.config;
  const auto heads = [&](const Value& x) { return reshape(x, {x.size(0), x.size(1), g.heads, g.head_dim}); };
  Value q = forward(c, a.wq, inputs_q);
  Value k = forward(c, a.wk, inputs_kv);
  Value v = forward(c, a.wv, inputs_kv);
  q = heads(q);
  k = heads(k);
  v = heads(v);
  const DType given = q.dtype();
  if (g.wide) {
    q = to(std::move(q), DType::fp32);
    k = to(std::move(k), DType::fp32);
  }
  Value out = molmo_attend(c, g, q, k, v, mask);
  out = to(std::move(out), given);
  out = reshape(out, {out.size(0), out.size(1), g.width()});
  out = forward(c, a.wo, out);
  return out;
}

}  // namespace vlmest
