// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/reference/rows.hpp>

#include <vlmest/op/rope.hpp>

namespace vlmest::kernels::reference {

struct RopeResult {
  std::vector<double> q;  ///< [batch, rows, heads, head_dim]
  std::vector<double> k;  ///< [batch, rows, kv_heads, head_dim]
};

/// x * cos + rotate_half(x) * sin over the first rotary_dim channels of each head, where rotate_half is (-second half,
/// first half); the others pass (transformers 5.17 modeling_llama.py, apply_rotary_pos_emb). cos and sin: [rows,
/// rotary_dim].
inline RopeResult rope(const RotaryEmbedding& op, std::span<const double> q, std::span<const double> k,
                       std::span<const double> cos, std::span<const double> sin) {
  const auto c = rows_of(cos, op.rows, op.rotary_dim, "cos"), s = rows_of(sin, op.rows, op.rotary_dim, "sin");
  const std::int64_t tokens = op.batch * op.rows, half = op.rotary_dim / 2;
  const auto turned = [&](std::span<const double> x, std::int64_t heads, const char* which) {
    const auto in = rows_of(x, tokens * heads, op.head_dim, which);
    std::vector<double> r;
    auto out = rows_of(r, tokens * heads, op.head_dim);
    out = in;
    for (std::int64_t i = 0; i < tokens * heads; ++i) {
      const std::int64_t row = i / heads % op.rows;
      Eigen::RowVectorXd other(op.rotary_dim);
      other << -in.row(i).segment(half, half), in.row(i).head(half);
      out.row(i).head(op.rotary_dim) =
          in.row(i).head(op.rotary_dim).cwiseProduct(c.row(row)) + other.cwiseProduct(s.row(row));
    }
    return r;
  };
  return {turned(q, op.heads, "q"), turned(k, op.kv_heads, "k")};
}

}  // namespace vlmest::kernels::reference
