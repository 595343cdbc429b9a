// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

namespace vlmest::kernels::attention {

/// What the flash kernels must know of the problem.
struct FlashSizes {
  int heads, group, q_len, kv_len, head_dim, query_tiles;
  float scale;     ///< of the scores, times log2(e)
  bool ping_pong;  ///< flash_consumer.cuh, FlashTurn
};

/// Which part of it a block has. Neighbouring blocks share a head's keys and values in L2; under a causal mask the
/// longest rows go first, so that no long block starts last.
struct FlashBlock {
  int matrix, kv_matrix, first_row;

  __device__ inline FlashBlock(const FlashSizes& sizes, int rows, bool causal) {
    const int tile = static_cast<int>(blockIdx.x) % sizes.query_tiles;
    matrix = static_cast<int>(blockIdx.x) / sizes.query_tiles;
    const int kv_heads = sizes.heads / sizes.group;
    kv_matrix = matrix / sizes.heads * kv_heads + matrix % sizes.heads / sizes.group;
    first_row = (causal ? sizes.query_tiles - 1 - tile : tile) * rows;
  }
};

/// Which keys rows see: without a causal mask every row every key, with it query i the keys up to i + kv_len - q_len.
struct FlashRange {
  int kv_len, offset;
  bool causal;

  __device__ inline FlashRange(const FlashSizes& sizes, bool causal_)
      : kv_len(sizes.kv_len), offset(sizes.kv_len - sizes.q_len), causal(causal_) {}

  /// Keys that a row sees; not positive where it sees none.
  __device__ inline int visible(int row) const { return causal ? min(kv_len, row + offset + 1) : kv_len; }
  /// Tiles that hold a key visible to one of the rows up to last_row; at least one, which may be masked altogether.
  __device__ inline int tiles(int last_row, int keys) const { return max(1, (visible(last_row) + keys - 1) / keys); }
  /// Tiles that every row from first_row on sees whole.
  __device__ inline int whole_tiles(int first_row, int keys) const { return max(0, visible(first_row)) / keys; }
};

}  // namespace vlmest::kernels::attention
