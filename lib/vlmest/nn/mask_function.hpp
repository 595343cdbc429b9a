// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/context.hpp>
#include <vlmest/nn/paged_cache.hpp>
#include <vlmest/nn/quantized_cache.hpp>

/// Mask functions over index ranges and what evaluating them allocates (transformers 5.17, masking_utils.py).
namespace vlmest {

/// What a decoder's attention mask is made from: the caller's mask[B, L] (int64) and the cache's state.
struct MaskShape {
  std::int64_t batch = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::optional<std::int64_t> window;  ///< sliding window of the layers that use this mask
  std::int64_t kv_offset = 0;          ///< position of the first key: what a sliding layer has dropped
  bool chunked = false;  ///< tokens see those of their own chunk, of `window` tokens; the cache keeps as many
};

/// Of the full layers or, with their window, of the sliding ones: sizes against the first such layer, or against the
/// first of all where there is none (cache_utils.py, get_mask_sizes).
inline MaskShape mask_shape(const Cache& cache, std::int64_t batch, std::int64_t q_len,
                            std::optional<std::int64_t> window = std::nullopt) {
  const CacheLayer* layer = &cache.layers.front();
  for (const auto& l : cache.layers)
    if (l.window.has_value() == window.has_value()) {
      layer = &l;
      break;
    }
  MaskShape m{.batch = batch, .q_len = q_len, .kv_len = layer->seen + q_len, .window = window};
  if (layer->window) {
    if (layer->seen >= *layer->window) m.kv_len = *layer->window - 1 + q_len;
    m.kv_offset = std::max<std::int64_t>(layer->seen - *layer->window + 1, 0);
  }
  return m;
}

/// The index ranges of a mask and the shapes in which they meet. sdpa_mask evaluates the mask functions on ranges of
/// four dimensions (broadcast), or, where the model passes functions of its own, under torch.vmap: then every range
/// keeps its one dimension and the batch rule of each op adds what is missing in front.
struct MaskGrid {
  MaskShape of;
  Value batch, head, query, key;
  Shape column;                   ///< the queries against the keys
  Shape unit, unit_column;        ///< a constant as it is allocated, and against the keys
  Shape per_query, query_column;  ///< something of each query of each sequence: allocated, and against the keys
  Shape per_key, key_row;         ///< something of each key of each sequence
};

inline MaskGrid mask_grid(Context& c, const MaskShape& m, bool vmap) {
  using namespace eager;
  MaskGrid g{.of = m};
  g.batch = arange(c.b, m.batch);
  g.head = arange(c.b, 1);
  g.query = arange(c.b, m.q_len);
  g.query = add_scalar(g.query);
  g.key = arange(c.b, m.kv_len);
  g.key = add_scalar(g.key);
  if (vmap) {
    g.batch = view(std::move(g.batch), {m.batch, 1});
    g.column = g.unit_column = {m.q_len, 1};
    g.unit = {m.q_len};
    g.per_query = {m.batch, m.q_len};
    g.query_column = {m.batch, m.q_len, 1};
    g.per_key = {m.batch, m.kv_len};
    g.key_row = {m.batch, 1, m.kv_len};
    return g;
  }
  g.batch = view(std::move(g.batch), {m.batch, 1, 1, 1});
  g.column = {1, 1, m.q_len, 1};
  g.query = view(std::move(g.query), g.column);
  g.key = view(std::move(g.key), {1, 1, 1, m.kv_len});
  g.per_query = g.query_column = {m.batch, 1, m.q_len, 1};
  g.per_key = g.key_row = {m.batch, 1, 1, m.kv_len};
  return g;
}

/// and_masks and or_masks: the running result is rebound after each function.
template <class... F>
Value fold_masks(Context& c, const MaskGrid& g, const char* start, const char* op, F&&... f) {
  Value result = eager::view(eager::fill(c.b, start, g.unit, DType::boolean), g.unit_column);
  auto step = [&](auto& function) {
    Value next = function();
    result = eager::pointwise(op, DType::boolean, result, std::move(next));
  };
  (step(f), ...);
  return result;
}
template <class... F>
Value and_masks(Context& c, const MaskGrid& g, F&&... f) {
  return fold_masks(c, g, "new_ones", "bitwise_and.Tensor", f...);
}
template <class... F>
Value or_masks(Context& c, const MaskGrid& g, F&&... f) {
  return fold_masks(c, g, "new_zeros", "bitwise_or.Tensor", f...);
}

/// key <= query.
inline Value causal_function(const MaskGrid& g) {
  return eager::compare("le.Tensor", g.key, eager::view(g.query, g.column));
}
/// key > query - window.
inline Value window_function(const MaskGrid& g) {
  Value bound = eager::sub_scalar(g.query);
  return eager::compare("gt.Tensor", g.key, eager::view(std::move(bound), g.column));
}
/// Positions of padding ahead of each sequence, where its chunks begin to count: int64[batch]
/// (create_chunked_causal_mask of masking_utils.py).
inline Value left_padding(const Value& padding) {
  using namespace eager;
  Value counted = cumsum(padding, DType::int64);
  Value zeros = fill(padding.builder(), "zeros_like", padding.shape(), DType::boolean);
  return sum(compare("eq.Tensor", std::move(counted), std::move(zeros)), -1, false);
}
/// Key and query in the same chunk of their sequence (chunked_overlay).
inline Value chunk_function(const MaskGrid& g, const Value& left) {
  using namespace eager;
  const Shape of_sequence{g.of.batch, 1, 1, 1};
  const auto chunk = [&](const Value& places) {
    Value begin = gather_rows("index.Tensor", left, g.batch, of_sequence);
    return unary("floor_divide", sub(places, std::move(begin)));
  };
  Value of_key = chunk(g.key);
  Value of_query = chunk(view(g.query, g.column));
  return compare("eq.Tensor", std::move(of_key), std::move(of_query));
}
/// padding[batch, key].
inline Value padding_function(const MaskGrid& g, const Value& padding) {
  return eager::view(eager::index(padding, g.batch, g.key, g.per_key), g.key_row);
}
/// Query and key in the same block (blockwise_overlay); blocks are numbered from 0, -1 is none.
inline Value block_function(const MaskGrid& g, const Value& blocks) {
  using namespace eager;
  Value of_query = index(blocks, g.batch, g.query, g.per_query);
  Value of_key = index(blocks, g.batch, g.key, g.per_key);
  Value same = compare("eq.Tensor", view(of_query, g.query_column), view(of_key, g.key_row));
  Value inside = compare_scalar("ge.Scalar", of_query);
  return pointwise("bitwise_and.Tensor", DType::boolean, std::move(same), view(std::move(inside), g.query_column));
}

/// bool[B, 1, Q, L] of whatever the functions have left.
inline Value whole_mask(const MaskGrid& g, Value mask) {
  Value m = mask.shape().rank() == 3 ? eager::unsqueeze(std::move(mask), 1) : std::move(mask);
  return eager::expand(std::move(m), {g.of.batch, 1, g.of.q_len, g.of.kv_len});
}

}  // namespace vlmest
