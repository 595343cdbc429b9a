// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <vlmest/op/attention.hpp>

namespace vlmest::kernels::reference {

/// out[batch, heads, q_len, v_dim] = softmax(q k^T / sqrt(head_dim)) v in double, the layouts of vlmest::Attention.
/// Query head h reads key head h / (heads / kv_heads). With `causal`, query i sees the keys up to i + kv_len - q_len;
/// one that sees none gives zeros. Throws Error where a span has another size than the op says.
inline std::vector<double> attention(const Attention& op, std::span<const double> q, std::span<const double> k,
                                     std::span<const double> v) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto expect = [](std::span<const double> s, std::int64_t n, const char* which) {
    if (static_cast<std::int64_t>(s.size()) != n)
      throw Error("reference.attention", std::string(which) + " has another size");
  };
  const std::int64_t group = op.heads / op.kv_heads;
  expect(q, op.batch * op.heads * op.q_len * op.head_dim, "q");
  expect(k, op.batch * op.kv_heads * op.kv_len * op.head_dim, "k");
  expect(v, op.batch * op.kv_heads * op.kv_len * op.v_dim, "v");
  std::vector<double> out(static_cast<std::size_t>(op.batch * op.heads * op.q_len * op.v_dim));
  const double scale = 1 / std::sqrt(static_cast<double>(op.head_dim));
  for (std::int64_t matrix = 0; matrix < op.batch * op.heads; ++matrix) {
    const std::int64_t kv = matrix / op.heads * op.kv_heads + matrix % op.heads / group;
    const Eigen::Map<const Matrix> queries(q.data() + matrix * op.q_len * op.head_dim, op.q_len, op.head_dim);
    const Eigen::Map<const Matrix> keys(k.data() + kv * op.kv_len * op.head_dim, op.kv_len, op.head_dim);
    const Eigen::Map<const Matrix> values(v.data() + kv * op.kv_len * op.v_dim, op.kv_len, op.v_dim);
    Eigen::Map<Matrix> result(out.data() + matrix * op.q_len * op.v_dim, op.q_len, op.v_dim);
    Matrix p = scale * queries * keys.transpose();
    for (std::int64_t i = 0; i < op.q_len; ++i) {
      const std::int64_t visible =
          op.causal ? std::clamp<std::int64_t>(i + 1 + op.kv_len - op.q_len, 0, op.kv_len) : op.kv_len;
      p.row(i).tail(op.kv_len - visible).setZero();
      if (visible == 0) continue;
      auto seen = p.row(i).head(visible).array();
      seen = (seen - seen.maxCoeff()).exp();
      seen /= seen.sum();
    }
    result.noalias() = p * values;
  }
  return out;
}

}  // namespace vlmest::kernels::reference
