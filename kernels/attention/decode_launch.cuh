// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/decode_kernel.cuh>
#include <kernels/attention/decode_launch.hpp>
#include <kernels/attention/swizzle.hpp>
#include <kernels/cuda/check.hpp>

namespace vlmest::kernels::attention {

template <int Columns, class T>
int decode_blocks(const Attention&) {
  using Shape = DecodeShape<Columns>;
  const auto kernel = decode_kernel<Columns, T>;
  int blocks = 0;
  cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::shared_bytes));
  cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, Shape::threads, Shape::shared_bytes));
  return blocks;
}

template <int Columns, class T>
void launch_decode(const Attention& op, DecodeSplits plan, const AttentionOperands& operands, cudaStream_t stream) {
  using Shape = DecodeShape<Columns>;
  const std::int64_t rows = op.batch * op.heads * op.q_len;
  const DecodeSizes sizes{.group = static_cast<int>(op.heads / op.kv_heads),
                          .q_len = static_cast<int>(op.q_len),
                          .kv_len = static_cast<int>(op.kv_len),
                          .head_dim = static_cast<int>(op.head_dim),
                          .row_tiles = static_cast<int>(decode_row_tiles(op)),
                          .splits = static_cast<int>(plan.splits),
                          .keys_per_split = static_cast<int>(plan.keys),
                          .causal = op.causal,
                          .scale = scale_log2(op)};
  float* const partial_out = static_cast<float*>(operands.workspace);
  const DecodePartials partials{partial_out, reinterpret_cast<float2*>(partial_out + rows * plan.splits * Columns)};
  const auto blocks = static_cast<unsigned>(op.batch * op.kv_heads * plan.splits * sizes.row_tiles);
  const auto kernel = decode_kernel<Columns, T>;
  T* const out = static_cast<T*>(operands.out);
  cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::shared_bytes));
  kernel<<<blocks, Shape::threads, Shape::shared_bytes, stream>>>(
      static_cast<const T*>(operands.q), static_cast<const T*>(operands.k), static_cast<const T*>(operands.v), out,
      partials, sizes);
  cuda::check(cudaGetLastError());
  if (plan.splits == 1) return;
  decode_combine_kernel<Columns, T>
      <<<static_cast<unsigned>(rows), most_decode_splits, 0, stream>>>(partials, out, sizes.splits, sizes.head_dim);
  cuda::check(cudaGetLastError());
}

/// f.template operator()<Columns>() for the op's head size.
template <class F>
decltype(auto) with_columns(const Attention& op, F&& f) {
  switch (padded_columns(op.head_dim)) {
    case 64: return f.template operator()<64>();
    case 80: return f.template operator()<80>();
    case 128: return f.template operator()<128>();
    default: return f.template operator()<256>();
  }
}

template <class T>
int decode_blocks(const Attention& op) {
  return with_columns(op, [&]<int Columns>() { return decode_blocks<Columns, T>(op); });
}
template <class T>
void launch_decode(const Attention& op, DecodeSplits plan, const AttentionOperands& operands, cudaStream_t stream) {
  with_columns(op, [&]<int Columns>() { launch_decode<Columns, T>(op, plan, operands, stream); });
}

}  // namespace vlmest::kernels::attention
