// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/family/minicpmv/rule.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/multihead_attention.hpp>
#include <vlmest/nn/norm.hpp>

/// MiniCPM-V 2.6's connector: resampler.py, Resampler. Learned queries read each piece's patches once, whose keys know
/// where they stand.
namespace vlmest {

struct MiniCpmResampler {
  std::int64_t queries = 64;  ///< query_num
  std::int64_t in = 1152;     ///< the tower's width
  std::int64_t width = 3584;  ///< the language model's
  std::int64_t heads() const { return width / 128; }
};

struct MiniCpmResamplerLayers {
  const MiniCpmResampler* config = nullptr;
  ScopeId scope = 0;
  TensorId query = none, proj = none, positions = none;
  std::optional<Linear> kv_proj;  ///< none where the tower is as wide as the language model
  MultiheadAttention attention;
  LayerNorm query_norm, norm, post_norm;
};

/// A parameter of the module itself stands ahead of its children's in named_parameters(), whatever __init__ says.
inline MiniCpmResamplerLayers make_resampler(Context& c, const MiniCpmResampler& g) {
  MiniCpmResamplerLayers r{.config = &g, .scope = c.b.scope()};
  r.query = parameter(c, "query", {g.queries, g.width});
  r.proj = parameter(c, "proj", {g.width, g.width});
  r.positions =
      buffer(c, "pos_embed", {image_processor::resampler_side, image_processor::resampler_side, g.width}, DType::fp32);
  if (g.in != g.width) r.kv_proj = make_linear(c, "kv_proj", g.in, g.width, false);
  r.attention = make_multihead_attention(c, "attn", g.width);
  r.attention.copied = true;  // resampler.py, multi_head_attention_forward
  r.query_norm = make_layer_norm(c, "ln_q", g.width);
  r.norm = make_layer_norm(c, "ln_kv", g.width);
  r.post_norm = make_layer_norm(c, "ln_post", g.width);
  return r;
}

/// torch.nn.utils.rnn.pad_sequence(batch_first=True): rows of [lengths, width], copied one by one into zeros.
inline Value pad_sequences(std::vector<Value> rows) {
  using namespace eager;
  std::int64_t most = 0;
  for (const Value& r : rows) most = std::max(most, r.size(0));
  const auto n = static_cast<std::int64_t>(rows.size());
  Value all = fill(rows.front().builder(), "full", {n, most, rows.front().size(1)}, rows.front().dtype());
  for (std::int64_t i = 0; i < n; ++i) {
    const Value& row = rows[static_cast<std::size_t>(i)];
    copy_over(slice(select(all, 0, i), 0, 0, row.size(0)), row);
  }
  return all;
}

/// Each piece's part of the table in the activations' type, and `padding` where it has none.
inline Value piece_positions(Context& c, const MiniCpmResamplerLayers& m, const Value& sizes, const Value& lengths,
                             const Value& padding, std::span<const Grid> pieces) {
  using namespace eager;
  std::vector<Value> rows;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const auto [h, w] = pieces[i];
    const Value size = select(sizes, 0, at);
    item(select(size, 0, 0));
    item(select(size, 0, 1));
    Value part = slice(slice(Value(c.b, m.positions), 0, 0, h), 1, 0, w);
    {
      const Value count = mul(select(size, 0, 0), select(size, 0, 1));
      item(count);
      part = reshape(part, {h * w, -1});
    }
    rows.push_back(to(std::move(part), c.dtype()));
    item(select(lengths, 0, at));
    fill_(slice(select(padding, 0, at), 0, h * w, padding.size(1)));
  }
  return pad_sequences(std::move(rows));
}

/// MultiheadAttention.forward, torch's over queries[Q, N, width], keys and values[L, N, width], three tensors; padding
/// bool[N, L] becomes an additive mask of every head.
inline Value resample(Context& c, const MiniCpmResamplerLayers& m, const Value& q, const Value& k, const Value& v,
                      const Value& padding) {
  using namespace eager;
  const MultiheadAttention& a = m.attention;
  InScope in(c.b, a.scope);
  const std::int64_t width = q.size(2), heads = m.config->heads(), n = padding.size(0), length = padding.size(1);
  const Value additive = masked_fill_(zeros_like(padding, c.dtype()), padding);
  const std::array parts{width, width, width};
  std::vector<Value> weights = split(Value(c.b, a.in_weight), parts, 0),
                     biases = split(Value(c.b, a.in_bias), parts, 0);
  Value queries = linear(q, std::move(weights[0]), std::move(biases[0]));
  Value keys = linear(k, std::move(weights[1]), std::move(biases[1]));
  Value values = linear(v, std::move(weights[2]), std::move(biases[2]));
  const Value mask = reshape(expand(view(additive, {n, 1, 1, length}), {n, heads, 1, length}), {n * heads, 1, length});
  return projected_attention(c, a, heads, std::move(queries), std::move(keys), std::move(values), mask).out;
}

/// Resampler.forward: x[N, L, in], sizes int32[N, 2] -> [N, queries, width].
inline Value forward(Context& c, const MiniCpmResamplerLayers& m, Value arg, const Value& sizes,
                     std::span<const Grid> pieces, std::int64_t length) {
  using namespace eager;
  InScope in(c.b, m.scope);
  Value x = std::move(arg);
  const std::int64_t n = x.size(0);
  const Value lengths = mul(select(sizes, 1, 0), select(sizes, 1, 1));
  {  // _adjust_pos_cache
    const auto most_of = [&](int axis) {
      const Value side = select(sizes, 1, axis);
      const Bytes copy = n > 1 ? data_bytes(side) : Bytes{};  // max of all elements reads them in a row
      return reduce("max", DType::int32, Shape{}, side, copy, n > 1 ? 2 : 1);
    };
    const Value rows = most_of(0);
    const Value columns = most_of(1);
    item(compare_scalar("gt.Scalar", rows));
    item(compare_scalar("gt.Scalar", columns));
  }
  const Value most = reduce("max", DType::int32, Shape{}, lengths);
  item(most);
  const Value padding = fill(c.b, "zeros", {n, length}, DType::boolean);
  const Value positions = permute(piece_positions(c, m, sizes, lengths, padding, pieces), {1, 0, 2});
  if (m.kv_proj) x = forward(c, *m.kv_proj, x);
  x = permute(forward(c, m.norm, x), {1, 0, 2});
  const Value q = forward(c, m.query_norm, Value(c.b, m.query));
  Value out;
  {
    const Value repeated = repeat(unsqueeze(q, 1), {1, n, 1});
    const Value keys = add(x, positions);
    out = resample(c, m, repeated, keys, x, padding);
  }
  x = out;
  x = forward(c, m.post_norm, x);
  return matmul_rows(x, Value(c.b, m.proj));
}

}  // namespace vlmest
