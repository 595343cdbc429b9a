// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/gradient.hpp>

/// torch.nn.functional.embedding_bag, mode "sum" with a weight for each entry.
namespace vlmest::eager {

/// The gradient of the whole table (aten/src/ATen/native/cuda/EmbeddingBag.cu, embedding_bag_backward_cuda_sum_avg):
/// entries are sorted with their places whatever their number, then summed up as embedding_dense_backward sums rows.
inline Value embedding_bag_backward(Value gradient, Value entries, Value weights, const Shape& table) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const std::int64_t n = entries.size(0);
  const Bytes whole = size_of(numel(table), t), scratch = sorted_rows_workspace(n, table[0], table[1], t);
  const TensorId r = b.result(t, table, "_embedding_bag_backward");
  const MemoryOp op{.read = data_bytes(gradient) + data_bytes(entries) + data_bytes(weights) + scratch,
                    .written = whole + scratch,
                    .workspace = scratch,
                    .dtype = t,
                    .kernels = 12};
  return emit1(b, "_embedding_bag_backward", op, r, {scratch}, gradient, entries, weights);
}

/// table[rows, width] and indices, weights[bags, entries] -> [bags, width]. Where the table is not trained, a function
/// without a backward runs (aten/src/ATen/native/EmbeddingBag.cpp, embedding_bag). Indices and weights are views of the
/// caller's; the bags' beginnings, and which bag each entry is in, live until the function returns or the backward has
/// run.
inline Value embedding_bag(Value table, Value indices, Value weights) {
  Builder& b = table.builder();
  const DType t = table.dtype();
  const std::int64_t bags = indices.size(0), entries = numel(indices.shape()).value(), width = table.size(1);
  const GradEdge e = edge(table);
  Value offsets = fill(b, "arange.start_step", {bags}, DType::int64);
  Value flat = view(std::move(indices), {-1}), shares = view(std::move(weights), {-1});
  const std::array<TensorId, 4> ins{table.id(), flat.id(), offsets.id(), shares.id()};
  const std::array<TensorId, 4> outs{
      b.result(t, {bags, width}, "embedding_bag"), b.result(DType::int64, {entries}, "offset2bag"),
      b.result(DType::int64, {bags}, "bag_size"), b.result(DType::int64, {0}, "max_indices")};
  const Bytes gathered = size_of(Elements(checked_mul(entries, width)), t),
              made = size_of(Elements(checked_mul(bags, width)), t);
  const MemoryOp op{.read = gathered + data_bytes(flat) + data_bytes(offsets) + data_bytes(shares),
                    .written = made + size_of(Elements(checked_add(entries, bags)), DType::int64),
                    .dtype = t,
                    .kernels = 1};
  const bool trained = e || !b.grad_enabled();
  b.emit(trained ? "_embedding_bag" : "_embedding_bag_forward_only", op, ins, outs);
  Value r(b, outs[0]), bag_of(b, outs[1]), sizes(b, outs[2]), largest(b, outs[3]);
  const bool saves = static_cast<bool>(e);
  differentiable(r, "EmbeddingBagBackward0", {e},
                 [at = saved(flat, saves), starts = saved(offsets, saves), of = saved(bag_of, saves),
                  counts = saved(sizes, saves), most = saved(largest, saves), share = saved(shares, saves),
                  whole = e.shape](Gradients& g) { g.out[0] = embedding_bag_backward(g.in[0], at, share, whole); });
  return r;
}

}  // namespace vlmest::eager
