// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/flash_launch.hpp>
#include <kernels/attention/flash_range.cuh>
#include <kernels/attention/online_softmax.cuh>
#include <kernels/attention/swizzle.hpp>
#include <kernels/attention/warp_tile.cuh>
#include <kernels/cuda/check.hpp>

/// The flash attention forward of flash_mma.hpp. One block computes 64 rows of one head, 16 in each of four warps. Keys
/// and values have one tile each in shared memory: values arrive during q k, the next keys during p v.
namespace vlmest::kernels::attention {

constexpr int flash_mma_rows = 64;
/// Keys per tile: less where the outputs already fill the registers.
template <int Columns>
constexpr int flash_mma_keys = Columns > 128 ? 32 : 64;
constexpr int flash_mma_threads = 128;

template <int Columns>
constexpr int flash_mma_shared_bytes = (flash_mma_rows + 2 * flash_mma_keys<Columns>)*PaddedRows<Columns>::row_bytes;

template <int Columns, bool Causal, class T>
__global__ void __launch_bounds__(flash_mma_threads)
    flash_mma_kernel(const T* q, const T* k, const T* v, T* out, const FlashSizes sizes) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  using Rows = PaddedRows<Columns>;
  constexpr int keys = flash_mma_keys<Columns>;
  const std::uint32_t q_tile = shared_address(dynamic);
  const std::uint32_t k_tile = q_tile + flash_mma_rows * Rows::row_bytes;
  const std::uint32_t v_tile = k_tile + keys * Rows::row_bytes;

  const FlashBlock block(sizes, flash_mma_rows, Causal);
  const FlashRange range(sizes, Causal);
  const int head_dim = sizes.head_dim;
  const int thread = threadIdx.x;
  q += (static_cast<std::int64_t>(block.matrix) * sizes.q_len + block.first_row) * head_dim;
  k += static_cast<std::int64_t>(block.kv_matrix) * sizes.kv_len * head_dim;
  v += static_cast<std::int64_t>(block.kv_matrix) * sizes.kv_len * head_dim;
  const auto copy_keys = [&](std::uint32_t tile, const T* from, int j) {
    Rows::template copy<keys, flash_mma_threads>(tile, from + static_cast<std::int64_t>(j) * keys * head_dim,
                                                 sizes.kv_len - j * keys, head_dim, thread);
    copy_commit();
  };

  const int warp_row = thread / 32 * 16;
  const int row = block.first_row + warp_row + thread % 32 / 4;
  const int visible[2] = {range.visible(row), range.visible(row + 8)};
  const int tiles = range.tiles(min(block.first_row + flash_mma_rows, sizes.q_len) - 1, keys);
  const int whole = range.whole_tiles(block.first_row, keys);

  float o[Columns / 2] = {};
  OnlineSoftmax softmax;
  Rows::template copy<flash_mma_rows, flash_mma_threads>(q_tile, q, sizes.q_len - block.first_row, head_dim, thread);
  copy_keys(k_tile, k, 0);
  for (int j = 0; j < tiles; ++j) {
    copy_wait<0>();
    __syncthreads();  // keys are there, and every warp is done with the values before
    copy_keys(v_tile, v, j);
    float s[keys / 2];
    warp_scores<Columns, T>(s, q_tile + warp_row * Rows::row_bytes, k_tile);
    copy_wait<0>();
    __syncthreads();  // values are there, and every warp is done with the keys
    if (j + 1 < tiles) copy_keys(k_tile, k, j + 1);
    if (j >= whole) mask(s, j * keys, visible);
    float correction[2];
    softmax.update(s, sizes.scale, correction);
    scale_rows(o, correction);
    std::uint32_t p[keys / 4];
    round_to_operand<T>(s, p);
    warp_outputs<Columns, T>(o, p, v_tile);
  }

  softmax.reduce();
  out += static_cast<std::int64_t>(block.matrix) * sizes.q_len * head_dim;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= sizes.q_len) continue;
    const float factor = softmax.normaliser(r);
    T* const line = out + static_cast<std::int64_t>(row + 8 * r) * head_dim + 2 * (thread % 4);
#pragma unroll
    for (int i = 0; i < Columns / 8; ++i)
      if (8 * i < head_dim)
        *reinterpret_cast<std::uint32_t*>(line + 8 * i) =
            packed(o[4 * i + 2 * r] * factor, o[4 * i + 2 * r + 1] * factor, T{});
  }
}

template <int Columns, bool Causal, class T>
void launch_flash_mma(const Attention& op, const AttentionOperands& operands, cudaStream_t stream) {
  const std::int64_t query_tiles = (op.q_len + flash_mma_rows - 1) / flash_mma_rows;
  const std::int64_t blocks = checked_mul(query_tiles, checked_mul(op.batch, op.heads));
  if (blocks > INT32_MAX) throw Error("attention/flash_mma", "more blocks than a grid has", "take a smaller batch");
  const FlashSizes sizes{.heads = static_cast<int>(op.heads),
                         .group = static_cast<int>(op.heads / op.kv_heads),
                         .q_len = static_cast<int>(op.q_len),
                         .kv_len = static_cast<int>(op.kv_len),
                         .head_dim = static_cast<int>(op.head_dim),
                         .query_tiles = static_cast<int>(query_tiles),
                         .scale = scale_log2(op),
                         .ping_pong = false};
  constexpr int shared_bytes = flash_mma_shared_bytes<Columns>;
  const auto kernel = flash_mma_kernel<Columns, Causal, T>;
  cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  kernel<<<static_cast<unsigned>(blocks), flash_mma_threads, shared_bytes, stream>>>(
      static_cast<const T*>(operands.q), static_cast<const T*>(operands.k), static_cast<const T*>(operands.v),
      static_cast<T*>(operands.out), sizes);
  cuda::check(cudaGetLastError());
}

template <int Columns, class T>
void launch_flash_mma(const Attention& op, const AttentionOperands& operands, cudaStream_t stream) {
  return op.causal ? launch_flash_mma<Columns, true, T>(op, operands, stream)
                   : launch_flash_mma<Columns, false, T>(op, operands, stream);
}

template <class T>
void launch_flash_mma(const Attention& op, const AttentionOperands& operands, cudaStream_t stream) {
  switch (padded_columns(op.head_dim)) {
    case 64: return launch_flash_mma<64, T>(op, operands, stream);
    case 80: return launch_flash_mma<80, T>(op, operands, stream);
    case 128: return launch_flash_mma<128, T>(op, operands, stream);
    default: return launch_flash_mma<256, T>(op, operands, stream);
  }
}

}  // namespace vlmest::kernels::attention
