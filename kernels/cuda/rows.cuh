// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include <kernels/cuda/vector.cuh>

/// Kernels that work on rows: blockDim.x threads share a row, blockDim.y rows share a block.
namespace vlmest::cuda {

/// How a row is spread over threads. `held`: vectors that each thread keeps in registers, so that the row is read once;
/// 0 where it is too long for that and is read again.
struct RowLaunch {
  dim3 blocks;
  dim3 threads;
  int held = 0;
};

/// Threads of a block at most, and the blocks that a multiprocessor shall hold: with 256 threads of 4 vectors, 6 blocks
/// are 96 KiB of loads in flight; the compiler left alone unpacks 16-bit elements early and leaves room for fewer.
constexpr int row_threads(int held) { return held == 2 || held == 4 ? 256 : 512; }
constexpr int row_blocks(int held) { return held == 2 || held == 4 ? 6 : 2; }

/// Few threads with several vectors each, so that loads are in flight before the first reduction; up to a warp a row,
/// several rows share a block and no barrier is needed. Rows of 64 KiB (with 16-byte vectors) are still held.
inline RowLaunch row_launch(std::int64_t rows, std::int64_t vectors, const char* where) {
  RowLaunch r;
  const auto shape = [&](std::int64_t threads, int held) {
    const std::int64_t together = threads <= 32 ? row_threads(2) / threads : 1;
    r.threads = dim3(static_cast<unsigned>(threads), static_cast<unsigned>(together));
    r.blocks = dim3(grid(ceil_div(rows, together), where));
    r.held = held;
  };
  const auto warps = [&](std::int64_t held) { return ceil_div(ceil_div(vectors, held), 32) * 32; };
  if (vectors <= 64)
    shape(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ceil_div(vectors, 2)))), 2);
  else if (warps(4) <= row_threads(4))
    shape(warps(4), 4);
  else if (warps(8) <= row_threads(8))
    shape(warps(8), 8);
  else
    shape(row_threads(0), 0);
  return r;
}

/// Calls f with `held` as a constant.
template <class F>
void dispatch_held(int held, F&& f) {
  switch (held) {
    case 2: return std::forward<F>(f)(std::integral_constant<int, 2>{});
    case 4: return std::forward<F>(f)(std::integral_constant<int, 4>{});
    case 8: return std::forward<F>(f)(std::integral_constant<int, 8>{});
    default: return std::forward<F>(f)(std::integral_constant<int, 0>{});
  }
}

/// The row of this thread; its number is beyond the last one where a block is not full.
__device__ inline std::int64_t own_row() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }

__device__ inline float from_lane(float v, int distance) { return __shfl_xor_sync(0xffffffffu, v, distance); }

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Combines the values of the threads of a row; every one of them gets the result. All threads of the block must call
/// it. Successive calls take turns with two sets of shared memory: whoever passes the barrier of the next call has read
/// the results of this one, so one barrier a call is enough.
template <class T>
class RowReduction {
 public:
  struct Shared {
    T partial[2][32];
  };
  __device__ explicit RowReduction(Shared& shared) : shared_(shared) {}

  template <class Op>
  __device__ T operator()(T v, Op op) {
    const int lanes = blockDim.x < 32 ? static_cast<int>(blockDim.x) : 32;
    for (int distance = lanes / 2; distance > 0; distance /= 2) v = op(v, from_lane(v, distance));
    if (blockDim.x <= 32) return v;
    const int lane = static_cast<int>(threadIdx.x) % 32, warps = static_cast<int>(blockDim.x) / 32;
    T* const partial = shared_.partial[turn_];
    turn_ ^= 1;
    if (lane == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    v = partial[0];
    for (int w = 1; w < warps; ++w) v = op(v, partial[w]);
    return v;
  }

 private:
  Shared& shared_;
  int turn_ = 0;
};

}  // namespace vlmest::cuda
