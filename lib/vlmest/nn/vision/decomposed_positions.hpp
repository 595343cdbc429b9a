// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// Biases of relative positions, one table for rows and one for columns (Li et al., arXiv:2112.01526, section 3.1;
/// transformers models/sam, SamVisionAttention). Every query has a bias for each key: [heads, queries, keys], once as
/// it is put together and once more as the attention's scores lie.
namespace vlmest {

/// modeling_sam.py, get_rel_pos, of as many queries as keys: table[L, D] -> [size, size, D]. The table is always
/// resampled, to its own length too; the places in it are made on the host.
inline Value relative_rows(Context& c, TensorId table, std::int64_t size) {
  using namespace eager;
  const std::int64_t distances = 2 * size - 1;
  Value rows = transpose(unsqueeze(Value(c.b, table), 0), 1, 2);
  rows = upsample_linear1d(std::move(rows), distances);
  rows = permute(reshape(std::move(rows), {-1, distances}), {1, 0});
  return host_index(rows, {size, size});
}

/// torch.einsum("bhwc,hkc->bhwk", q, rows): a product for each of the dimension `along` (1: h, 2: w, then with
/// "wkc"), of all others folded into rows, a copy where they do not lie so (aten/src/ATen/native/Linear.cpp,
/// sumproduct_pair).
inline Value along_axis(const Value& q, const Value& rows, int along) {
  using namespace eager;
  const int other = 3 - along;
  const std::int64_t batch = q.size(0), channels = q.size(3), keys = rows.size(1);
  Value left = unsqueeze(permute(q, {along, 0, other, 3}), 4);
  left = reshape(std::move(left), {q.size(along), batch * q.size(other), channels});
  Value right = permute(rows, {0, 2, 1});
  Value product = bmm(std::move(left), std::move(right));
  product = squeeze(view(std::move(product), {q.size(along), batch, q.size(other), 1, keys}), 3);
  return along == 1 ? permute(std::move(product), {1, 0, 2, 3}) : permute(std::move(product), {1, 2, 0, 3});
}

/// modeling_sam.py, get_decomposed_rel_pos: query[N, rows * cols, D] -> [N, rows, cols, rows, cols]. Of several
/// batch entries the result's rows come first in memory, so that whoever needs it in the order of its sizes copies it.
inline Value decomposed_positions(Context& c, const Value& query, TensorId rows_table, TensorId cols_table,
                                  std::int64_t rows, std::int64_t cols) {
  using namespace eager;
  const Value by_row = relative_rows(c, rows_table, rows);
  const Value by_col = relative_rows(c, cols_table, cols);
  const Value q = reshape(query, {query.size(0), rows, cols, query.size(2)});
  const Value bias_rows = along_axis(q, by_row, 1);
  const Value bias_cols = along_axis(q, by_col, 2);
  Value wide = unsqueeze(bias_rows, 4);
  Value tall = unsqueeze(bias_cols, 3);
  return add(std::move(wide), std::move(tall));
}

}  // namespace vlmest
