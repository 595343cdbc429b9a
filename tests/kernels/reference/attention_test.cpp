// SPDX-License-Identifier: Apache-2.0
#include <kernels/reference/attention.hpp>

#include "../compare.hpp"

namespace vlmest::kernels {
namespace {

/// The definition, one number at a time, without shifting exponents.
std::vector<double> by_loops(const Attention& op, const std::vector<double>& q, const std::vector<double>& k,
                             const std::vector<double>& v) {
  const auto at = [](const std::vector<double>& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
  std::vector<double> out;
  for (std::int64_t b = 0; b < op.batch; ++b)
    for (std::int64_t h = 0; h < op.heads; ++h)
      for (std::int64_t i = 0; i < op.q_len; ++i) {
        const std::int64_t kv = b * op.kv_heads + h * op.kv_heads / op.heads;
        const std::int64_t query = (b * op.heads + h) * op.q_len + i;
        std::vector<double> sums(static_cast<std::size_t>(op.v_dim));
        double total = 0;
        for (std::int64_t j = 0; j < op.kv_len; ++j) {
          if (op.causal && j - (op.kv_len - op.q_len) > i) continue;
          double score = 0;
          for (std::int64_t d = 0; d < op.head_dim; ++d)
            score += at(q, query * op.head_dim + d) * at(k, (kv * op.kv_len + j) * op.head_dim + d);
          const double weight = std::exp(score / std::sqrt(static_cast<double>(op.head_dim)));
          total += weight;
          for (std::int64_t d = 0; d < op.v_dim; ++d)
            sums[static_cast<std::size_t>(d)] += weight * at(v, (kv * op.kv_len + j) * op.v_dim + d);
        }
        for (const double sum : sums) out.push_back(total > 0 ? sum / total : 0);
      }
  return out;
}

TEST(ReferenceAttention, IsTheDefinition) {
  Random random;
  for (Attention op :
       {Attention{.q_len = 1, .kv_len = 1, .head_dim = 4, .v_dim = 4},
        Attention{.batch = 2, .heads = 6, .kv_heads = 2, .q_len = 5, .kv_len = 9, .head_dim = 8, .v_dim = 3},
        Attention{.heads = 3, .kv_heads = 3, .q_len = 7, .kv_len = 7, .head_dim = 5, .v_dim = 5},
        Attention{.batch = 3, .heads = 4, .q_len = 6, .kv_len = 2, .head_dim = 3, .v_dim = 4}})
    for (const bool causal : {false, true}) {
      op.causal = causal;
      const auto q = random.normal(op.batch * op.heads * op.q_len * op.head_dim);
      const auto k = random.normal(op.batch * op.kv_heads * op.kv_len * op.head_dim);
      const auto v = random.normal(op.batch * op.kv_heads * op.kv_len * op.v_dim);
      expect_close(reference::attention(op, q, k, v), by_loops(op, q, k, v), 1e-13);
    }
}

TEST(ReferenceAttention, CausalQueriesAreTheLastPositions) {
  const Attention op{.q_len = 2, .kv_len = 3, .head_dim = 1, .v_dim = 1, .causal = true};
  const std::vector<double> zeros(2);
  const std::vector<double> keys(3);
  const std::vector<double> values{1, 3, 8};
  EXPECT_EQ(reference::attention(op, zeros, keys, values), (std::vector<double>{2, 4}));
  const Attention longer{.q_len = 3, .kv_len = 1, .head_dim = 1, .v_dim = 1, .causal = true};
  EXPECT_EQ(reference::attention(longer, keys, {values.data(), 1}, {values.data() + 2, 1}),
            (std::vector<double>{0, 0, 8}));
}

TEST(ReferenceAttention, LargeScoresStayFinite) {
  const Attention op{.q_len = 1, .kv_len = 2, .head_dim = 1, .v_dim = 1};
  const std::vector<double> q{1000};
  const std::vector<double> k{1000, 999};
  const std::vector<double> v{5, 7};
  EXPECT_EQ(reference::attention(op, q, k, v), std::vector<double>{5});
}

TEST(ReferenceAttention, RefusesOperandsOfAnotherSize) {
  const Attention op{.q_len = 2, .kv_len = 2, .head_dim = 3, .v_dim = 3};
  const std::vector<double> six(6);
  const std::vector<double> five(5);
  EXPECT_EQ(reference::attention(op, six, six, six).size(), 6u);
  EXPECT_THROW(reference::attention(op, five, six, six), Error);
  EXPECT_THROW(reference::attention(op, six, five, six), Error);
  EXPECT_THROW(reference::attention(op, six, six, five), Error);
}

}  // namespace
}  // namespace vlmest::kernels
