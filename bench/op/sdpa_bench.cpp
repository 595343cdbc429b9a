// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/attention/cudnn.hpp>
#include <kernels/attention/decode.hpp>
#include <kernels/attention/flash.hpp>
#include <kernels/attention/flash_mma.hpp>
#include <kernels/attention/naive.hpp>

namespace vlmest::bench {
namespace {

template <class Kernel>
Prepared prepare_with(std::shared_ptr<Kernel> kernel, const Attention& op) {
  const auto elements = [&](std::int64_t heads, std::int64_t length, std::int64_t dim) {
    return Elements(checked_mul(checked_mul(op.batch, heads), checked_mul(length, dim)));
  };
  return {.operands = {input(elements(op.heads, op.q_len, op.head_dim), op.dtype),
                       input(elements(op.kv_heads, op.kv_len, op.head_dim), op.dtype),
                       input(elements(op.kv_heads, op.kv_len, op.v_dim), op.dtype),
                       output(elements(op.heads, op.q_len, op.v_dim), op.dtype)},
          .workspace = kernel->workspace(),
          .call = [kernel](std::span<void* const> x, void* workspace, cudaStream_t s) {
            (*kernel)({.q = x[0], .k = x[1], .v = x[2], .out = x[3], .workspace = workspace}, s);
          }};
}

template <class Kernel>
Prepared prepare_with(const Attention& op) {
  return prepare_with(std::make_shared<Kernel>(op), op);
}

}  // namespace

Prepared prepare_sdpa(const Point& p, cudaStream_t) {
  const Attention op = std::get<Attention>(read_op(p, 90).op);
  if (p.variant == "cudnn") return prepare_with<kernels::CudnnAttention>(op);
  if (p.variant == "flash") return prepare_with<kernels::FlashAttention>(op);
  if (p.variant == "flash_mma") return prepare_with<kernels::FlashMmaAttention>(op);
  if (p.variant == "split_kv") return prepare_with<kernels::DecodeAttention>(op);
  if (p.variant == "naive") return prepare_with<kernels::NaiveAttention>(op);
  throw Error(name(p), "no kernel is called " + p.variant);
}

}  // namespace vlmest::bench
