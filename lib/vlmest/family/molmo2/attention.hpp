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

/// torch.einsum("...qhd,...khd->...hqk"): both operands stand as stacks of matrices by batch and head, which copies
/// what has its heads inside; a dimension that only the other one has is one of a single element, behind the operand's
/// own or, where the other one's is a single element too, in its place (aten/src/ATen/native/Linear.cpp,
/// sumproduct_pair). The caller's operands live through it.
inline Value einsum_scores(const Value& q, const Value& k) {
  using namespace eager;
  const std::int64_t batch = q.size(0), heads = q.size(2), queries = q.size(1), keys = k.size(1), d = q.size(3);
  const std::int64_t stack = checked_mul(batch, heads);
  Value left = reshape(permute(unsqueeze(q, 4), {0, 2, 1, 3, 4}), {stack, queries, d});
  Value right = permute(k, {0, 2, 3, 1});
  right = reshape(unsqueeze(std::move(right), queries == 1 ? 3 : 4), {stack, d, keys});
  Value out = view(bmm(std::move(left), std::move(right)), {batch, heads, queries, 1, keys});
  return squeeze(std::move(out), 3);
}
/// The same of "...hqk,...khd->...qhd".
inline Value einsum_values(const Value& weights, const Value& v) {
  using namespace eager;
  const std::int64_t batch = v.size(0), heads = v.size(2), queries = weights.size(2), keys = v.size(1), d = v.size(3);
  const std::int64_t stack = checked_mul(batch, heads);
  Value left = reshape(unsqueeze(weights, 4), {stack, queries, keys});
  Value right = permute(v, {0, 2, 1, 3});
  right = reshape(unsqueeze(std::move(right), queries == 1 ? 3 : 4), {stack, keys, d});
  Value out = view(bmm(std::move(left), std::move(right)), {batch, heads, queries, 1, d});
  return permute(squeeze(std::move(out), 3), {0, 2, 1, 3});
}

/// What torch's kernel, or the module itself, makes of heads[N, S, H, D]. Eager attention does not read the mask; its
/// `weights` are the caller's variable. Throws Error where torch refuses what the module hands over.
inline Value molmo_attend(Context& c, const Molmo2AttentionConfig& g, const Value& q, const Value& k, Value& v,
                          const Value& mask, Value& weights) {
  using namespace eager;
  if (c.attention() == AttentionKind::eager) {
    {
      const Value scaled = div_scalar(q);
      weights = einsum_scores(scaled, k);
    }
    weights = to(softmax(weights, DType::fp32), q.dtype());
    const Value cast = to(weights, v.dtype());
    return einsum_values(cast, v);
  }
  if (c.attention() == AttentionKind::sdpa) {
    if (!g.wide && is_half(q.dtype()))
      throw Error("float32_attention",
                  "false: the module makes values fp32 beside queries and keys that are not, which torch refuses",
                  "give plan.attention=eager or plan.dtype=fp32, or a config with float32_attention true");
    v = to(std::move(v), DType::fp32);
  }
  const auto by_heads = [](const Value& x) { return contiguous(transpose(x, 1, 2)); };
  const Value heads_q = by_heads(q);
  const Value heads_k = by_heads(k);
  const Value heads_v = by_heads(v);
  if (c.attention() == AttentionKind::flash)  // a stack's own kernel
    return stacks::attend(c, {.q = heads_q, .k = heads_k, .v = heads_v}).out;
  return transpose(scaled_dot_product_attention(heads_q, heads_k, heads_v, mask, false), 1, 2);
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
  Value weights;
  Value out = molmo_attend(c, g, q, k, v, mask, weights);
  out = to(std::move(out), given);
  out = reshape(out, {out.size(0), out.size(1), g.width()});
  out = forward(c, a.wo, out);
  return out;
}

}  // namespace vlmest
