// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/flash_range.cuh>
#include <kernels/attention/flash_shape.hpp>
#include <kernels/attention/online_softmax.cuh>
#include <kernels/attention/tma.cuh>
#include <kernels/attention/wgmma.cuh>

/// The flash attention forward of flash.hpp for compute capability 9.0a. One block computes `Shape::query_rows` rows of
/// one head: warpgroup 0 only copies (one thread of it), each of the others owns 64 rows, whose output and running
/// softmax stay in its registers. Keys and values come in tiles of `Shape::keys` through a ring of `Shape::stages`.
namespace vlmest::kernels::attention {

/// [head size, length, batch x heads] of each operand in boxes of 64 columns, and of the 16 last ones (`tail`; unused
/// where the head size is a multiple of 64).
struct FlashMaps {
  CUtensorMap q, k, v, q_tail, k_tail, v_tail;
};

/// Addresses in shared memory.
template <class Shape>
struct FlashShared {
  std::uint32_t q, k, v, barrier;

  __device__ inline explicit FlashShared(void* dynamic) {
    q = (shared_address(dynamic) + 1023) & ~1023u;
    k = q + Shape::QueryTile::bytes;
    v = k + Shape::stages * Shape::KeyTile::bytes;
    barrier = v + Shape::stages * Shape::KeyTile::bytes;
  }
  __device__ inline std::uint32_t key_tile(int stage) const { return k + stage * Shape::KeyTile::bytes; }
  __device__ inline std::uint32_t value_tile(int stage) const { return v + stage * Shape::KeyTile::bytes; }
  __device__ inline std::uint32_t q_full() const { return barrier; }
  __device__ inline std::uint32_t k_full(int stage) const { return barrier + 8 * (1 + stage); }
  __device__ inline std::uint32_t v_full(int stage) const { return barrier + 8 * (1 + Shape::stages + stage); }
  __device__ inline std::uint32_t k_empty(int stage) const { return barrier + 8 * (1 + 2 * Shape::stages + stage); }
  __device__ inline std::uint32_t v_empty(int stage) const { return barrier + 8 * (1 + 3 * Shape::stages + stage); }
};

template <class TileShape>
__device__ inline void load_tile(std::uint32_t shared, const CUtensorMap& map, const CUtensorMap& tail,
                                 std::uint32_t barrier, int row, int matrix) {
  barrier_expect(barrier, TileShape::bytes);
#pragma unroll
  for (int block = 0; block < TileShape::blocks; ++block)
    load_box(shared + block * TileShape::block_bytes, map, barrier, 64 * block, row, matrix);
  if constexpr (TileShape::tail)
    load_box(shared + TileShape::tail_offset, tail, barrier, 64 * TileShape::blocks, row, matrix);
}

/// The copying thread: queries once, then keys and values of tile j into stage j % stages when it is free. Barriers
/// alternate their parity with each use of a stage; the first use finds the stage free.
template <class Shape>
__device__ inline void produce(const FlashShared<Shape>& shared, const FlashMaps& maps, int tiles,
                               const FlashBlock& block) {
  load_tile<typename Shape::QueryTile>(shared.q, maps.q, maps.q_tail, shared.q_full(), block.first_row, block.matrix);
  for (int j = 0; j < tiles; ++j) {
    const int stage = j % Shape::stages;
    const std::uint32_t freed = (j / Shape::stages & 1) ^ 1;
    barrier_wait(shared.k_empty(stage), freed);
    load_tile<typename Shape::KeyTile>(shared.key_tile(stage), maps.k, maps.k_tail, shared.k_full(stage),
                                       j * Shape::keys, block.kv_matrix);
    barrier_wait(shared.v_empty(stage), freed);
    load_tile<typename Shape::KeyTile>(shared.value_tile(stage), maps.v, maps.v_tail, shared.v_full(stage),
                                       j * Shape::keys, block.kv_matrix);
  }
}

}  // namespace vlmest::kernels::attention
