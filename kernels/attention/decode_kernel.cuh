// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/decode_splits.hpp>
#include <kernels/attention/online_softmax.cuh>
#include <kernels/attention/warp_tile.cuh>

/// The kernels of decode.hpp.
namespace vlmest::kernels::attention {

/// Sizes of one instantiation. Every warp streams its own tiles of 16 keys and values through its own ring of stages,
/// so that the warps of a block meet only at the end. At 4.8 TB/s and about 800 ns a multiprocessor of the H200 must
/// have 30 KB under way; two blocks with two stages of 128 columns each have 139 KB.
template <int Columns>
struct DecodeShape {
  static constexpr int keys = 16;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int stages = Columns > 128 ? 2 : Columns > 80 ? 3 : 4;
  using Rows = PaddedRows<Columns>;
  static constexpr int tile_bytes = keys * Rows::row_bytes;
  static constexpr int q_bytes = 16 * Rows::row_bytes;
  static constexpr int shared_bytes = q_bytes + warps * stages * 2 * tile_bytes;
  /// Outputs of the warps, which take the place of the ring; rows are padded against bank conflicts.
  static constexpr int out_row = Columns + 8;
  static_assert(warps * 16 * out_row * 4 <= warps * stages * 2 * tile_bytes);
  static_assert(keys * warps == decode_keys_per_turn);
};

struct DecodeSizes {
  int group, q_len, kv_len, head_dim, row_tiles, splits, keys_per_split;
  bool causal;
  float scale;  ///< of the scores, times log2(e)
};

/// What the splits leave to the combining kernel: of split s of row r (over all heads) `columns` sums at
/// out[(r splits + s) columns], and the row's maximum (times the scale) and sum of exponentials.
struct DecodePartials {
  float* out;
  float2* state;
};

/// One warp's share of a split: tiles warp, warp + 4, … of 16 keys. Its outputs and softmax stay in its registers.
template <int Columns, class T>
__device__ inline void decode_warp(const DecodeSizes& sizes, const T* k, const T* v, int first_key, int end_key,
                                   std::uint32_t q, std::uint32_t ring, const int (&visible)[2],
                                   float (&o)[Columns / 2], OnlineSoftmax& softmax) {
  using Shape = DecodeShape<Columns>;
  constexpr int turn = Shape::keys * Shape::warps;
  const int lane = threadIdx.x % 32;
  const int start = first_key + threadIdx.x / 32 * Shape::keys;
  const int tiles = start < end_key ? (end_key - start + turn - 1) / turn : 0;
  const auto load = [&](int i) {
    if (i < tiles) {
      const int key = start + i * turn;
      const std::uint32_t tile = ring + i % Shape::stages * 2 * Shape::tile_bytes;
      const std::int64_t at = static_cast<std::int64_t>(key) * sizes.head_dim;
      Shape::Rows::template copy<Shape::keys, 32>(tile, k + at, end_key - key, sizes.head_dim, lane);
      Shape::Rows::template copy<Shape::keys, 32>(tile + Shape::tile_bytes, v + at, end_key - key, sizes.head_dim,
                                                  lane);
    }
    copy_commit();  // also an empty group: the waits count groups
  };
  // A split's end hides keys as the causal mask does.
  const int limit[2] = {min(visible[0], end_key), min(visible[1], end_key)};
  for (int i = 0; i < Shape::stages - 1; ++i) load(i);
  for (int i = 0; i < tiles; ++i) {
    copy_wait<Shape::stages - 2>();
    __syncwarp();  // tile i is there for all lanes, and all are done with tile i - 1, whose stage is loaded next
    load(i + Shape::stages - 1);
    const std::uint32_t tile = ring + i % Shape::stages * 2 * Shape::tile_bytes;
    float s[Shape::keys / 2];
    warp_scores<Columns, T>(s, q, tile);
    mask(s, start + i * turn, limit);
    float correction[2];
    softmax.update(s, sizes.scale, correction);
    scale_rows(o, correction);
    std::uint32_t p[Shape::keys / 4];
    round_to_operand<T>(s, p);
    warp_outputs<Columns, T>(o, p, tile + Shape::tile_bytes);
  }
  copy_wait<0>();
}

/// Block (row tile, split, matrix), row tiles fastest: they read the same keys, the second from L2.
template <int Columns, class T>
__global__ void __launch_bounds__(DecodeShape<Columns>::threads)
    decode_kernel(const T* q, const T* k, const T* v, T* out, const DecodePartials partials, const DecodeSizes sizes) {
  using Shape = DecodeShape<Columns>;
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ float maxima[Shape::warps][16];
  __shared__ float sums[Shape::warps][16];
  const int row_tile = static_cast<int>(blockIdx.x) % sizes.row_tiles;
  const int split = static_cast<int>(blockIdx.x) / sizes.row_tiles % sizes.splits;
  const std::int64_t matrix = static_cast<int>(blockIdx.x) / sizes.row_tiles / sizes.splits;
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;

  // The group's heads and their tokens lie one after the other: row = head of the group x q_len + token.
  const int rows = sizes.group * sizes.q_len;
  const int first_row = row_tile * 16;
  const std::int64_t first_of_all = matrix * rows + first_row;
  const std::uint32_t q_tile = shared_address(dynamic);
  if (warp == 0)
    Shape::Rows::template copy<16, 32>(q_tile, q + first_of_all * sizes.head_dim, rows - first_row, sizes.head_dim,
                                       lane);
  copy_commit();
  copy_wait<0>();
  __syncthreads();

  const int first_key = split * sizes.keys_per_split;
  const int end_key = min(sizes.kv_len, first_key + sizes.keys_per_split);
  const auto visible_to = [&](int row) {
    return sizes.causal ? row % sizes.q_len + 1 + sizes.kv_len - sizes.q_len : sizes.kv_len;
  };
  const int visible[2] = {visible_to(first_row + lane / 4), visible_to(first_row + lane / 4 + 8)};
  float o[Columns / 2] = {};
  OnlineSoftmax softmax;
  const std::int64_t kv = matrix * sizes.kv_len * sizes.head_dim;
  decode_warp<Columns, T>(sizes, k + kv, v + kv, first_key, end_key, q_tile,
                          q_tile + Shape::q_bytes + warp * Shape::stages * 2 * Shape::tile_bytes, visible, o, softmax);
  softmax.reduce();

  // The four warps' results, brought to the largest of their maxima.
  if (lane % 4 == 0) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      maxima[warp][lane / 4 + 8 * r] = softmax.max[r] * sizes.scale;
      sums[warp][lane / 4 + 8 * r] = softmax.sum[r];
    }
  }
  __syncthreads();
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = negative_infinity();
#pragma unroll
    for (int w = 0; w < Shape::warps; ++w) largest = fmaxf(largest, maxima[w][lane / 4 + 8 * r]);
    factor[r] = largest == negative_infinity() ? 0 : exp2_fast(softmax.max[r] * sizes.scale - largest);
  }
  scale_rows(o, factor);
  float* const results = reinterpret_cast<float*>(dynamic + Shape::q_bytes);
  float* const mine = results + (warp * 16 + lane / 4) * Shape::out_row + 2 * (lane % 4);
#pragma unroll
  for (int i = 0; i < Columns / 8; ++i)
#pragma unroll
    for (int r = 0; r < 2; ++r)
      *reinterpret_cast<float2*>(mine + 8 * r * Shape::out_row + 8 * i) =
          make_float2(o[4 * i + 2 * r], o[4 * i + 2 * r + 1]);
  __syncthreads();

  for (int i = thread; i < 16 * Columns; i += Shape::threads) {
    const int row = i / Columns;
    const int column = i % Columns;
    if (first_row + row >= rows) break;
    float largest = negative_infinity();
    for (int w = 0; w < Shape::warps; ++w) largest = fmaxf(largest, maxima[w][row]);
    float sum = 0;
    float value = 0;
    for (int w = 0; w < Shape::warps; ++w) {
      if (maxima[w][row] == negative_infinity()) continue;
      sum += sums[w][row] * exp2_fast(maxima[w][row] - largest);
      value += results[(w * 16 + row) * Shape::out_row + column];
    }
    const std::int64_t line = first_of_all + row;
    if (sizes.splits == 1) {
      if (column < sizes.head_dim) cuda::store(out + line * sizes.head_dim + column, sum > 0 ? value / sum : 0.0f);
    } else {
      const std::int64_t at = line * sizes.splits + split;
      partials.out[at * Columns + column] = value;
      if (column == 0) partials.state[at] = make_float2(largest, sum);
    }
  }
}

/// One block for each row: weights each split's sums by its maximum against the largest.
template <int Columns, class T>
__global__ void __launch_bounds__(most_decode_splits)
    decode_combine_kernel(const DecodePartials partials, T* out, int splits, int head_dim) {
  __shared__ float2 state[most_decode_splits];
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  if (thread < splits) state[thread] = partials.state[row * splits + thread];
  __syncthreads();
  float largest = negative_infinity();
  for (int s = 0; s < splits; ++s) largest = fmaxf(largest, state[s].x);
  for (int column = thread; column < head_dim; column += blockDim.x) {
    float sum = 0;
    float value = 0;
#pragma unroll 4
    for (int s = 0; s < splits; ++s) {
      const float weight = state[s].x == negative_infinity() ? 0.0f : exp2_fast(state[s].x - largest);
      sum += state[s].y * weight;
      value += partials.out[(row * splits + s) * Columns + column] * weight;
    }
    cuda::store(out + row * head_dim + column, sum > 0 ? value / sum : 0.0f);
  }
}

}  // namespace vlmest::kernels::attention
