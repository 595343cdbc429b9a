// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/flash_consumer.cuh>
#include <kernels/attention/flash_launch.hpp>
#include <kernels/attention/tensor_map.hpp>
#include <kernels/cuda/check.hpp>

namespace vlmest::kernels::attention {

template <class Shape>
FlashMaps flash_maps(const Attention& op, const AttentionOperands& operands) {
  const std::int64_t q_matrices = op.batch * op.heads;
  const std::int64_t kv_matrices = op.batch * op.kv_heads;
  const auto map = [&](const void* data, std::int64_t matrices, std::int64_t rows, int box_rows, int box_columns) {
    return tensor_map(data, op.dtype, matrices, rows, op.head_dim, box_rows, box_columns);
  };
  FlashMaps maps{};
  maps.q = map(operands.q, q_matrices, op.q_len, Shape::query_rows, 64);
  maps.k = map(operands.k, kv_matrices, op.kv_len, Shape::keys, 64);
  maps.v = map(operands.v, kv_matrices, op.kv_len, Shape::keys, 64);
  if constexpr (Shape::KeyTile::tail) {
    maps.q_tail = map(operands.q, q_matrices, op.q_len, Shape::query_rows, 16);
    maps.k_tail = map(operands.k, kv_matrices, op.kv_len, Shape::keys, 16);
    maps.v_tail = map(operands.v, kv_matrices, op.kv_len, Shape::keys, 16);
  }
  return maps;
}

template <class Shape, bool Causal, class T>
void launch_flash(const Attention& op, bool ping_pong, const AttentionOperands& operands, cudaStream_t stream) {
  const std::int64_t query_tiles = (op.q_len + Shape::query_rows - 1) / Shape::query_rows;
  const std::int64_t blocks = checked_mul(query_tiles, checked_mul(op.batch, op.heads));
  if (blocks > INT32_MAX) throw Error("attention/flash", "more blocks than a grid has", "take a smaller batch");
  const FlashSizes sizes{static_cast<int>(op.heads),
                         static_cast<int>(op.heads / op.kv_heads),
                         static_cast<int>(op.q_len),
                         static_cast<int>(op.kv_len),
                         static_cast<int>(op.head_dim),
                         static_cast<int>(query_tiles),
                         scale_log2(op),
                         ping_pong};
  const auto kernel = flash_kernel<Shape, Causal, T>;
  cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::shared_bytes));
  kernel<<<static_cast<unsigned>(blocks), Shape::threads, Shape::shared_bytes, stream>>>(
      flash_maps<Shape>(op, operands), sizes, static_cast<T*>(operands.out));
  cuda::check(cudaGetLastError());
}

template <int Columns, class T>
void launch_flash(const Attention& op, bool ping_pong, const AttentionOperands& operands, cudaStream_t stream) {
  using Shape = typename FlashShapeOf<Columns>::type;
  return op.causal ? launch_flash<Shape, true, T>(op, ping_pong, operands, stream)
                   : launch_flash<Shape, false, T>(op, ping_pong, operands, stream);
}

template <class T>
void launch_flash(const Attention& op, bool ping_pong, const AttentionOperands& operands, cudaStream_t stream) {
  switch (padded_columns(op.head_dim)) {
    case 64: return launch_flash<64, T>(op, ping_pong, operands, stream);
    case 80: return launch_flash<80, T>(op, ping_pong, operands, stream);
    case 128: return launch_flash<128, T>(op, ping_pong, operands, stream);
    default: return launch_flash<256, T>(op, ping_pong, operands, stream);
  }
}

}  // namespace vlmest::kernels::attention
