// SPDX-License-Identifier: Apache-2.0
#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/add/add.hpp>
#include <kernels/copy/copy.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/rope/rope.hpp>
#include <kernels/silu_mul/silu_mul.hpp>

namespace vlmest::bench {

using json::Reader;
namespace single_op = json::single_op;

namespace {

Elementwise read_elementwise(const Point& p) {
  const nlohmann::json document(p.op);
  const Reader r(document, name(p));
  Elementwise op{.elements = single_op::size(r, "elements"), .dtype = single_op::dtype(r, "bf16")};
  for (std::size_t i = 0; i < elementwise_table.size(); ++i)
    if (elementwise_table[i].name == op_name(p)) op.kind = static_cast<Elementwise::Kind>(i);
  return op;
}

}  // namespace

/// Inputs first, then the output. memcpy and memset are the driver's own.
Prepared prepare_elementwise(const Point& p, cudaStream_t) {
  using Data = std::span<void* const>;
  const Elementwise op = read_elementwise(p);
  const Elements n(op.elements);
  const Operand in = input(n, op.dtype), out = output(n, op.dtype);
  const auto bytes = static_cast<std::size_t>(in.size().value());
  switch (op.kind) {
    case Elementwise::Kind::copy:
      if (p.variant == "memcpy")
        return {.operands = {in, out}, .call = [kernel = kernels::MemcpyCopy(op)](Data x, void*, cudaStream_t s) {
                  kernel({.from = x[0], .to = x[1]}, s);
                }};
      return {.operands = {in, out}, .call = [kernel = kernels::StreamCopy(op)](Data x, void*, cudaStream_t s) {
                kernel({.from = x[0], .to = x[1]}, s);
              }};
    case Elementwise::Kind::read: {
      const kernels::StreamRead kernel(op);
      return {.operands = {in}, .workspace = kernel.workspace(), .call = [kernel](Data x, void* sums, cudaStream_t s) {
                kernel({.from = x[0], .sums = static_cast<std::uint32_t*>(sums)}, s);
              }};
    }
    case Elementwise::Kind::write:
      if (p.variant == "memset")
        return {.operands = {out},
                .call = [bytes](Data x, void*, cudaStream_t s) { cuda::check(cudaMemsetAsync(x[0], 0x5a, bytes, s)); }};
      return {.operands = {out}, .call = [kernel = kernels::StreamWrite(op)](Data x, void*, cudaStream_t s) {
                kernel({.to = x[0], .seed = 1}, s);
              }};
    case Elementwise::Kind::add:
      return {.operands = {in, in, out}, .call = [kernel = kernels::Add(op)](Data x, void*, cudaStream_t s) {
                kernel({.a = x[0], .b = x[1], .out = x[2]}, s);
              }};
    case Elementwise::Kind::silu_mul:
      return {.operands = {in, in, out}, .call = [kernel = kernels::SiluMul(op)](Data x, void*, cudaStream_t s) {
                kernel({.gate = x[0], .up = x[1], .out = x[2]}, s);
              }};
    default: throw Error(name(p), "has no kernel here");
  }
}

Prepared prepare_rope(const Point& p, cudaStream_t) {
  const nlohmann::json document(p.op);
  const Reader r(document, name(p));
  RotaryEmbedding op{.batch = single_op::size(r, "batch", 1),
                     .rows = single_op::size(r, "rows"),
                     .heads = single_op::size(r, "heads"),
                     .head_dim = single_op::size(r, "head_dim"),
                     .dtype = single_op::dtype(r, "bf16")};
  op.kv_heads = single_op::size(r, "kv_heads", op.heads);
  op.rotary_dim = single_op::size(r, "rotary_dim", op.head_dim);
  op.angles = single_op::dtype(r, vlmest::name(op.dtype), "angles");
  const std::int64_t tokens = checked_mul(op.batch, op.rows);
  const Elements q(checked_mul(tokens, checked_mul(op.heads, op.head_dim)));
  const Elements k(checked_mul(tokens, checked_mul(op.kv_heads, op.head_dim)));
  const Elements table(checked_mul(op.rows, op.rotary_dim));
  return {.operands = {input(q, op.dtype), input(k, op.dtype), input(table, op.angles), input(table, op.angles),
                       output(q, op.dtype), output(k, op.dtype)},
          .call = [kernel = kernels::FusedRope(op)](std::span<void* const> x, void*, cudaStream_t s) {
            kernel({.q = x[0], .k = x[1], .cos = x[2], .sin = x[3], .q_out = x[4], .k_out = x[5]}, s);
          }};
}

}  // namespace vlmest::bench
