// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// torch.nn.MultiheadAttention of equal widths: one matrix for queries, keys and values.
struct MultiheadAttention {
  ScopeId scope = 0;
  TensorId in_weight = none;  ///< [3 * width, width]
  TensorId in_bias = none;
  Linear out;
  /// Copies of torch's function that divide queries, as torch 1 did, and call out_proj as a module.
  bool copied = false;
};

inline MultiheadAttention make_multihead_attention(Context& c, const char* name, std::int64_t width) {
  Module m(c, name);
  MultiheadAttention r{.scope = m.scope};
  r.in_weight = parameter(c, "in_proj_weight", {checked_mul(width, 3), width});
  r.in_bias = parameter(c, "in_proj_bias", {checked_mul(width, 3)});
  Module o(c, "out_proj");
  r.out = declare_linear(c, width, width, true, StoredModule::fixed);
  return r;
}

/// Attention of projected q[Lq, B, E], k and v[L, B, E]: `out` is [B, Lq, E], `weights` their mean over the heads, [B,
/// Lq, L]. Queries and keys differ, so it takes the written-out path, and as its weights are asked for, that one forms
/// them (torch 2.11, torch/nn/functional.py, multi_head_attention_forward). A mask is additive, [B * heads, Lq, L].
/// A stack that does not write it out is told what each query sees and has no weights.
inline Attended projected_attention(Context& c, const MultiheadAttention& a, std::int64_t heads, Value q, Value k,
                                    Value v, const Value& mask) {
  using namespace eager;
  const std::int64_t queries = q.size(0), length = k.size(0), batch = q.size(1), width = q.size(2),
                     head_dim = width / heads;
  const Shape rows{checked_mul(queries, batch), width};
  const auto project = [&](Value x) {
    if (a.copied) return forward(c, a.out, x);
    return linear(std::move(x), Value(c.b, a.out.weight), Value(c.b, a.out.bias));
  };
  if (!c.stack().written_out_multihead_attention) {
    auto by_head = [&](Value& x) { x = permute(view(x, {x.size(0), batch, heads, head_dim}), {1, 2, 0, 3}); };
    by_head(q);
    by_head(k);
    by_head(v);
    Value out = reshape(stacks::attend(c, {q, k, v, {}, false}).out, rows);
    return {view(project(std::move(out)), {batch, queries, width}), {}};
  }
  auto fold_heads = [&](Value& x) { x = transpose(view(x, {x.size(0), batch * heads, head_dim}), 0, 1); };
  fold_heads(q);
  fold_heads(k);
  fold_heads(v);
  Value scaled = a.copied ? div_scalar(q) : mul_scalar(q);
  Value weights = mask ? baddbmm(mask, scaled, transpose(k, -2, -1)) : matmul(scaled, transpose(k, -2, -1));
  weights = softmax(weights);
  Value out = matmul(weights, v);
  out = view(contiguous(transpose(out, 0, 1)), rows);
  out = project(std::move(out));
  out = view(out, {queries, batch, width});
  weights = view(weights, {batch, heads, queries, length});
  weights = mean(weights, 1, false);
  return {transpose(out, 1, 0), weights};
}

/// Of query[B, Lq, E], key and value[B, L, E], batch first, three tensors, each of which is projected by its own part
/// of the matrix (torch/nn/functional.py, _in_projection_packed).
inline Attended multihead_attention(Context& c, const MultiheadAttention& a, std::int64_t heads, const Value& query,
                                    const Value& key, const Value& value, const Value& mask) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t width = query.size(2);
  const std::array parts{width, width, width};
  std::vector<Value> weights = split(Value(c.b, a.in_weight), parts, 0),
                     biases = split(Value(c.b, a.in_bias), parts, 0);
  const auto project = [&](const Value& x, std::size_t i) {
    return linear(transpose(x, 1, 0), std::move(weights[i]), std::move(biases[i]));
  };
  Value q = project(query, 0);
  Value k = project(key, 1);
  Value v = project(value, 2);
  return projected_attention(c, a, heads, std::move(q), std::move(k), std::move(v), mask);
}

}  // namespace vlmest
