// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include <vlmest/family/minimax_m3_vl/config.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/rope.hpp>

namespace vlmest {

/// A few heads of queries and one of keys, whose products say which blocks of keys attention sees (transformers
/// models/minimax_m3_vl, MiniMaxM3VLIndexer). No gradient comes back to it: what it gives are places.
struct Indexer {
  ScopeId scope = 0;
  Linear q, k;
  RmsNorm q_norm, k_norm;
};

/// In the order of MiniMaxM3VLIndexer.__init__. Its projections are called as the layer's are, so that adapters for
/// those stand on these too.
inline Indexer make_indexer(Context& c, const MiniMaxM3Text& g) {
  Module m(c, "indexer");
  Indexer r{.scope = m.scope};
  const IndexerConfig& i = g.indexer;
  r.q = make_linear(c, "q_proj", g.hidden, checked_mul(i.heads, i.head_dim), false);
  r.k = make_linear(c, "k_proj", g.hidden, i.head_dim, false);
  r.q_norm = make_rms_norm(c, "q_norm", i.head_dim, RmsNorm::Kind::gemma);
  r.k_norm = make_rms_norm(c, "k_norm", i.head_dim, RmsNorm::Kind::gemma);
  return r;
}

/// MiniMaxM3VLSparseCacheLayer.update_index: the first keys are kept as they are, later ones joined to those before.
inline Value update_index(Context& c, CacheLayer& layer, Value keys) {
  if (layer.off) return keys;
  if (layer.index_keys) keys = eager::cat(layer.index_keys, keys, -2);
  layer.index_keys = std::move(keys);
  c.b.label(layer.index_keys, "index keys", Role::kv_cache);
  return layer.index_keys;
}

/// Keys that come behind a query: bool[B, 1, S, keys].
inline Value keys_behind(const Value& key_positions, const Value& position_ids) {
  using namespace eager;
  Value keys = key_positions;
  for (int i = 0; i < 3; ++i) keys = unsqueeze(std::move(keys), 0);
  return compare("gt.Tensor", std::move(keys), unsqueeze(unsqueeze(position_ids, 1), 3));
}

/// Blocks of `keys` keys.
inline std::int64_t blocks_of(const IndexerConfig& g, std::int64_t keys) {
  return checked_add(keys, g.block - 1) / g.block;
}

/// One kernel that chooses blocks without writing scores down, of a runtime whose attention is told what it sees.
inline Value fused_block_choice(Context& c, const IndexerConfig& g, const Value& q, const Value& k) {
  const Attention products{.batch = q.size(0),
                           .heads = q.size(1),
                           .kv_heads = 1,
                           .q_len = q.size(2),
                           .kv_len = k.size(2),
                           .head_dim = q.size(3),
                           .v_dim = 0,
                           .causal = true,
                           .dtype = q.dtype()};
  const std::int64_t chosen = std::min(g.topk_blocks, blocks_of(g, k.size(2)));
  const std::array<TensorId, 2> ins{q.id(), k.id()};
  const std::array<TensorId, 1> outs{
      c.b.result(DType::int32, {q.size(0), q.size(1), q.size(2), chosen}, "chosen blocks")};
  c.b.emit("choose_blocks", products, ins, outs);
  return {c.b, outs[0]};
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLIndexer.forward: x[B, S, hidden] and position_ids[B, S] -> the chosen blocks
/// of each query and head, int64[B, heads, S, blocks].
inline Value choose_blocks(Context& c, const MiniMaxM3Text& text, const Indexer& m, const Value& x,
                           const CosSin& positions, const Value& position_ids, CacheLayer& cache) {
  using namespace eager;
  const IndexerConfig& g = text.indexer;
  InScope in(c.b, m.scope);
  const std::int64_t batch = x.size(0), queries = x.size(1);
  Value q = view(forward(c, m.q, x), {batch, queries, -1, g.head_dim});
  q = transpose(forward(c, m.q_norm, q), 1, 2);
  Value k = view(forward(c, m.k, x), {batch, queries, 1, g.head_dim});
  k = transpose(forward(c, m.k_norm, k), 1, 2);
  {
    const CosSin own{slice(positions.cos, -1, 0, g.head_dim), slice(positions.sin, -1, 0, g.head_dim), {}};
    apply_joint_partial_rope(c, q, k, own);
  }
  k = update_index(c, cache, std::move(k));
  if (!c.stack().makes_masks) return fused_block_choice(c, g, q, k);
  const std::int64_t keys = k.size(2), blocks = blocks_of(g, keys), missing = blocks * g.block - keys;
  Value scores;
  {  // arguments of one call, alive until it returns
    const Value wide_q = to(q, DType::fp32), wide_k = to(k, DType::fp32);
    scores = matmul(wide_q, expand(transpose(wide_k, -1, -2), {batch, g.heads, g.head_dim, keys}));
  }
  const Value key_positions = arange(c.b, keys);
  const Value behind = keys_behind(key_positions, position_ids);
  scores = masked_fill(scores, behind);
  if (missing > 0) scores = pad(scores, -1, 0, missing);
  scores = view(std::move(scores), {batch, g.heads, queries, blocks, g.block});
  Value of_blocks = amax(scores, -1);
  const Value own_block = floor_divide(position_ids);
  Value local, local_places;  // variables of the function: alive until it returns
  if (g.local_blocks > 0) {
    local = arange(c.b, g.local_blocks);
    const Value row = view(local, {1, 1, -1});
    local_places = clamp(sub(unsqueeze(own_block, -1), row), ClampedAt::min);
    local_places = expand(unsqueeze(local_places, 1), {-1, g.heads, -1, -1});
    of_blocks = mark_places(std::move(of_blocks), local_places);
  }
  const Ranked top = topk(of_blocks, std::min(g.topk_blocks, blocks));
  return masked_fill(top.indices, compare_scalar("eq.Scalar", top.values));
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLIndexer.build_block_mask: additive [B, attention heads, S, keys] of the chosen
/// blocks `chosen` that `attention_mask` (none: keys that are not behind) shows too.
inline Value block_choice_mask(Context& c, const MiniMaxM3Text& text, const Value& chosen, const Value& attention_mask,
                               std::int64_t keys, DType t, const Value& position_ids) {
  using namespace eager;
  const IndexerConfig& g = text.indexer;
  const std::int64_t blocks = blocks_of(g, keys);
  const Value safe = masked_fill(chosen, compare_scalar("lt.Scalar", chosen));
  Value bias = fill(c.b, "new_full", {chosen.size(0), chosen.size(1), chosen.size(2), blocks + 1}, t);
  bias = mark_places(std::move(bias), safe);
  bias = slice(std::move(bias), -1, 0, blocks);
  Value kept = slice(repeat_interleave(compare_scalar("eq.Scalar", bias), g.block, -1), -1, 0, keys);
  kept = repeat_interleave(kept, text.heads / chosen.size(1), 1);
  Value shown, given, key_positions, behind;  // variables of the function: alive until it returns
  if (attention_mask) {
    given = attention_mask.dtype() == DType::boolean ? attention_mask : compare_scalar("eq.Scalar", attention_mask);
    shown = pointwise("bitwise_and.Tensor", DType::boolean, kept, given);
  } else {
    key_positions = arange(c.b, keys);
    behind = keys_behind(key_positions, position_ids);
    shown = pointwise("bitwise_and.Tensor", DType::boolean, kept, pointwise("bitwise_not", DType::boolean, behind));
  }
  Value zeros = fill(c.b, "zeros", shown.shape(), t);
  Value hidden = pointwise("bitwise_not", DType::boolean, shown);
  return masked_fill(std::move(zeros), std::move(hidden));
}

}  // namespace vlmest
