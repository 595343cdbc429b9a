// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <kernels/attention/masked_softmax.hpp>
#include <kernels/attention/naive.hpp>

namespace vlmest::kernels {
namespace {

/// The op, where it is one of those that this variant does.
const Attention& required(const Attention& op) {
  attention::require(op, "naive");
  if (checked_mul(checked_mul(op.batch, op.heads), op.q_len) > INT32_MAX)
    throw Error("attention/naive", "more rows of scores than a grid has blocks", "take a smaller batch");
  return op;
}

/// q[key heads, group x q_len, head_dim] k[key heads, kv_len, head_dim]^T.
Matmul score_product(const Attention& op) {
  return {.batch = op.batch * op.kv_heads,
          .m = op.heads / op.kv_heads * op.q_len,
          .n = op.kv_len,
          .k = op.head_dim,
          .dtype = op.dtype};
}

/// p[key heads, group x q_len, kv_len] v[key heads, kv_len, v_dim].
Matmul output_product(const Attention& op) {
  return {.batch = op.batch * op.kv_heads,
          .m = op.heads / op.kv_heads * op.q_len,
          .n = op.v_dim,
          .k = op.kv_len,
          .dtype = op.dtype};
}

/// The scores' bytes up to where the products' scratch begins, aligned as cudaMalloc's memory is.
std::int64_t scores_end(Bytes scores) { return (scores.value() + 255) / 256 * 256; }

}  // namespace

NaiveAttention::NaiveAttention(const Attention& op)
    : op_(required(op)),
      scores_(score_product(op), {.layout = WeightLayout::linear}),
      outputs_(output_product(op), {.layout = WeightLayout::mm}) {}

Bytes NaiveAttention::scores() const {
  const std::int64_t rows = checked_mul(checked_mul(op_.batch, op_.heads), op_.q_len);
  return size_of(Elements(checked_mul(rows, op_.kv_len)), op_.dtype);
}

Bytes NaiveAttention::workspace() const {
  return Bytes(scores_end(scores())) + std::max(scores_.workspace(), outputs_.workspace());
}

void NaiveAttention::operator()(const AttentionOperands& operands, cudaStream_t stream) const {
  void* const scores_at = operands.workspace;
  void* const scratch = static_cast<char*>(operands.workspace) + scores_end(scores());
  scores_({.a = operands.q, .b = operands.k, .out = scores_at, .workspace = scratch}, stream);
  attention::masked_softmax(op_, scores_at, stream);
  outputs_({.a = scores_at, .b = operands.v, .out = operands.out, .workspace = scratch}, stream);
}

}  // namespace vlmest::kernels
