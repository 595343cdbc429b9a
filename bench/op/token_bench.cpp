// SPDX-License-Identifier: Apache-2.0
#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/cross_entropy/cross_entropy.hpp>
#include <kernels/gather/gather.hpp>

namespace vlmest::bench {

using json::Reader;
namespace single_op = json::single_op;

Prepared prepare_embedding(const Point& p, cudaStream_t) {
  const nlohmann::json document(p.op);
  const Reader r(document, name(p));
  const Gather op{.rows = single_op::size(r, "rows"),
                  .width = single_op::size(r, "width", 4096),
                  .table_rows = single_op::size(r, "vocab"),
                  .dtype = single_op::dtype(r, "bf16")};
  return {.operands = {input(Elements(checked_mul(op.table_rows, op.width)), op.dtype),
                       indices(Elements(op.rows), op.table_rows),
                       output(Elements(checked_mul(op.rows, op.width)), op.dtype)},
          .call = [kernel = kernels::RowGather(op)](std::span<void* const> x, void*, cudaStream_t s) {
            kernel({.table = x[0], .index = static_cast<const std::int64_t*>(x[1]), .out = x[2]}, s);
          }};
}

Prepared prepare_cross_entropy(const Point& p, cudaStream_t) {
  const nlohmann::json document(p.op);
  const Reader r(document, name(p));
  const CrossEntropy op{
      .rows = single_op::size(r, "rows"), .vocab = single_op::size(r, "vocab"), .dtype = single_op::dtype(r, "fp32")};
  return {.operands = {input(Elements(checked_mul(op.rows, op.vocab)), op.dtype), indices(Elements(op.rows), op.vocab),
                       output(Elements(op.rows), DType::fp32), output(Elements(1), DType::fp32)},
          .call = [kernel = kernels::OnlineCrossEntropy(op)](std::span<void* const> x, void*, cudaStream_t s) {
            kernel({.logits = x[0],
                    .targets = static_cast<const std::int64_t*>(x[1]),
                    .losses = static_cast<float*>(x[2]),
                    .mean = static_cast<float*>(x[3])},
                   s);
          }};
}

}  // namespace vlmest::bench
