// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/flash_kernel.cuh>

namespace vlmest::kernels::attention {

/// Who may give work to the matrix units: warpgroup w waits for barrier 1 + w, which the one before it (in a ring)
/// reaches when its products are in the queue. Warpgroup 0 starts. Off: nobody waits.
struct FlashTurn {
  int warpgroup, consumers, tiles;
  bool on;

  __device__ inline void take() const {
    if (on) named_sync(1 + warpgroup, 256);
  }
  /// `last`: the last turn of all; nobody waits for the first warpgroup's next one.
  __device__ inline void pass(bool last) const {
    if (on && !(last && warpgroup + 1 == consumers))
      named_arrive(1 + (warpgroup + 1 == consumers ? 0 : warpgroup + 1), 256);
  }
};

/// One warpgroup's 64 rows. In the steady state the products q k of tile j and p v of tile j - 1 are in flight together
/// and the softmax of tile j runs beside p v (Shah et al.: FlashAttention-3, arXiv 2407.08608, section 3.2).
template <class Shape, class T>
class FlashConsumer {
  using QueryTile = typename Shape::QueryTile;
  using KeyTile = typename Shape::KeyTile;
  static constexpr int keys = Shape::keys;
  static constexpr int halves = Shape::columns == 256 ? 2 : 1;  ///< products of at most 128 columns
  static constexpr int half_columns = Shape::columns / 64 * 64 / halves;

  const FlashShared<Shape>& shared_;
  int warpgroup_;
  float s_[keys / 2];
  float out_[halves][half_columns / 2] = {};
  float out_tail_[8] = {};
  std::uint32_t p_[keys / 4];
  OnlineSoftmax softmax_;

 public:
  __device__ inline FlashConsumer(const FlashShared<Shape>& shared, int warpgroup)
      : shared_(shared), warpgroup_(warpgroup) {}

  /// s = q k, 16 columns at a time.
  __device__ inline void scores(int stage) {
    pin(s_);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < Shape::columns / 16; ++step)
      wgmma<T>(s_, QueryTile::along_columns(shared_.q, 64 * warpgroup_, step),
               KeyTile::along_columns(shared_.key_tile(stage), 0, step), step > 0);
    wgmma_commit();
  }

  /// out += p v, 16 keys at a time.
  __device__ inline void outputs(int stage) {
    pin_outputs();
    pin(p_);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < keys / 16; ++step) {
#pragma unroll
      for (int half = 0; half < halves; ++half)
        wgmma<T>(out_[half], p_ + 4 * step,
                 KeyTile::along_rows(shared_.value_tile(stage), half * half_columns / 64, step));
      if constexpr (KeyTile::tail)
        wgmma<T>(out_tail_, p_ + 4 * step, KeyTile::tail_along_rows(shared_.value_tile(stage), step));
    }
    wgmma_commit();
  }

  __device__ inline void pin_outputs() {
#pragma unroll
    for (int half = 0; half < halves; ++half) pin(out_[half]);
    if constexpr (KeyTile::tail) pin(out_tail_);
  }

  /// Each warp says that it has read a stage.
  __device__ inline void release(std::uint32_t barrier) {
    if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
  }

  template <bool Masked>
  __device__ inline void first_tile(float scale, const int (&visible)[2]) {
    barrier_wait(shared_.k_full(0), 0);
    scores(0);
    wgmma_wait<0>();
    pin(s_);
    release(shared_.k_empty(0));
    if constexpr (Masked) mask(s_, 0, visible);
    float unused[2];
    softmax_.update(s_, scale, unused);
    round_to_operand<T>(s_, p_);
  }

  /// Tile j's scores and tile j - 1's outputs.
  template <bool Masked>
  __device__ inline void step(int j, float scale, const int (&visible)[2], const FlashTurn& turn) {
    const int stage = j % Shape::stages;
    const int before = (j - 1) % Shape::stages;
    barrier_wait(shared_.k_full(stage), j / Shape::stages & 1);
    turn.take();
    scores(stage);
    barrier_wait(shared_.v_full(before), (j - 1) / Shape::stages & 1);
    outputs(before);
    turn.pass(j + 1 == turn.tiles);
    wgmma_wait<1>();
    pin(s_);
    release(shared_.k_empty(stage));
    if constexpr (Masked) mask(s_, j * keys, visible);
    float correction[2];
    softmax_.update(s_, scale, correction);
    wgmma_wait<0>();
    pin_outputs();
    pin(p_);
    release(shared_.v_empty(before));
#pragma unroll
    for (int half = 0; half < halves; ++half) scale_rows(out_[half], correction);
    if constexpr (KeyTile::tail) scale_rows(out_tail_, correction);
    round_to_operand<T>(s_, p_);
  }

  __device__ inline void last_outputs(int tiles) {
    const int stage = (tiles - 1) % Shape::stages;
    barrier_wait(shared_.v_full(stage), (tiles - 1) / Shape::stages & 1);
    outputs(stage);
    wgmma_wait<0>();
    pin_outputs();
    release(shared_.v_empty(stage));  // tiles may follow that only other warpgroups read
  }

  /// Writes this thread's two rows, `row` and `row` + 8 of the head whose output starts at `out`.
  __device__ inline void store(T* out, int row, int q_len, int head_dim) {
    softmax_.reduce();
    const float factor[2] = {softmax_.normaliser(0), softmax_.normaliser(1)};
    const int column = 2 * (threadIdx.x % 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (row + 8 * r >= q_len) continue;
      T* const line = out + static_cast<std::int64_t>(row + 8 * r) * head_dim + column;
#pragma unroll
      for (int half = 0; half < halves; ++half)
#pragma unroll
        for (int i = 0; i < half_columns / 8; ++i)
          store_pair(line + half * half_columns + 8 * i, out_[half] + 4 * i + 2 * r, factor[r]);
      if constexpr (KeyTile::tail)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (64 * KeyTile::blocks + 8 * i < head_dim)
            store_pair(line + 64 * KeyTile::blocks + 8 * i, out_tail_ + 4 * i + 2 * r, factor[r]);
    }
  }

 private:
  __device__ static inline void store_pair(T* to, const float* from, float factor) {
    *reinterpret_cast<std::uint32_t*>(to) = packed(from[0] * factor, from[1] * factor, T{});
  }
};

template <class Shape, bool Causal, class T>
__global__ void __launch_bounds__(Shape::threads, 1)
    flash_kernel(const __grid_constant__ FlashMaps maps, const FlashSizes sizes, T* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char dynamic[];
  const FlashShared<Shape> shared(dynamic);

  const FlashBlock block(sizes, Shape::query_rows, Causal);
  const FlashRange range(sizes, Causal);
  const int tiles = range.tiles(min(block.first_row + Shape::query_rows, sizes.q_len) - 1, Shape::keys);

  if (threadIdx.x == 0) {
    prefetch(maps.q);
    prefetch(maps.k);
    prefetch(maps.v);
    barrier_init(shared.q_full(), 1);
    for (int stage = 0; stage < Shape::stages; ++stage) {
      barrier_init(shared.k_full(stage), 1);
      barrier_init(shared.v_full(stage), 1);
      barrier_init(shared.k_empty(stage), 4 * Shape::consumers);
      barrier_init(shared.v_empty(stage), 4 * Shape::consumers);
    }
    barrier_init_fence();
  }
  __syncthreads();

  if (threadIdx.x < 128) {
    registers_down<Shape::producer_registers>();
    if (threadIdx.x == 0) produce<Shape>(shared, maps, tiles, block);
  } else {
    registers_up<Shape::consumer_registers>();
    const int warpgroup = threadIdx.x / 128 - 1;
    const FlashTurn turn{warpgroup, Shape::consumers, tiles, sizes.ping_pong};
    if (warpgroup == Shape::consumers - 1 && tiles > 1) turn.pass(false);

    const int first_row = block.first_row + 64 * warpgroup;
    const int row = first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    const int visible[2] = {range.visible(row), range.visible(row + 8)};
    const int own_tiles = min(tiles, range.tiles(first_row + 63, Shape::keys));
    const int whole = min(own_tiles, range.whole_tiles(first_row, Shape::keys));

    FlashConsumer<Shape, T> consumer(shared, warpgroup);
    barrier_wait(shared.q_full(), 0);
    if (whole > 0)
      consumer.template first_tile<false>(sizes.scale, visible);
    else
      consumer.template first_tile<true>(sizes.scale, visible);
    int j = 1;
    for (; j < whole; ++j) consumer.template step<false>(j, sizes.scale, visible, turn);
    for (; j < own_tiles; ++j) consumer.template step<true>(j, sizes.scale, visible, turn);
    for (; j < tiles; ++j) {
      turn.take();
      turn.pass(j + 1 == tiles);
    }
    consumer.last_outputs(own_tiles);
    consumer.store(out + static_cast<std::int64_t>(block.matrix) * sizes.q_len * sizes.head_dim, row, sizes.q_len,
                   sizes.head_dim);
  }
#else
  __trap();
#endif
}

}  // namespace vlmest::kernels::attention
