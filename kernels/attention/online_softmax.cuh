// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The running softmax of attention over tiles of keys (Milakov, Gimelshein: Online normalizer calculation for softmax,
/// arXiv 1805.02867; Dao: FlashAttention-2, arXiv 2307.08691, section 3.1), for accumulators of mma.m16n8: a thread
/// holds parts of two rows, d[4 i + 2 r + c] of row r, and four neighbouring lanes hold a row together.
namespace vlmest::kernels::attention {

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float negative_infinity() { return __int_as_float(static_cast<int>(0xff800000u)); }

/// Sets the scores of keys that a row may not see to minus infinity. `visible[r]` counts the keys that row r sees,
/// `first_key` is the tile's first key.
template <int N>
__device__ inline void mask(float (&s)[N], int first_key, const int (&visible)[2]) {
  const int lane_key = first_key + 2 * (threadIdx.x % 4);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int left = visible[r] - lane_key;
#pragma unroll
    for (int i = 0; i < N / 4; ++i)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        if (8 * i + c >= left) s[4 * i + 2 * r + c] = negative_infinity();
  }
}

struct OnlineSoftmax {
  float max[2] = {negative_infinity(), negative_infinity()};  ///< of the raw scores
  float sum[2] = {0, 0};                                      ///< this thread's share

  /// Replaces scores by exp2((s - max) scale), where `scale` holds log2(e), and says by how much what was accumulated
  /// so far shrinks. A row that has seen no key keeps a maximum of minus infinity; its exponentials are 0.
  template <int N>
  __device__ inline void update(float (&s)[N], float scale, float (&correction)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float m = max[r];
#pragma unroll
      for (int i = 0; i < N / 4; ++i) m = fmaxf(m, fmaxf(s[4 * i + 2 * r], s[4 * i + 2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
      const float shift = m == negative_infinity() ? 0.0f : m * scale;
      correction[r] = exp2_fast(max[r] * scale - shift);
      max[r] = m;
      float total = 0;
#pragma unroll
      for (int i = 0; i < N / 4; ++i)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& x = s[4 * i + 2 * r + c];
          x = exp2_fast(x * scale - shift);
          total += x;
        }
      sum[r] = sum[r] * correction[r] + total;
    }
  }

  /// The sums of whole rows; call once, at the end.
  __device__ inline void reduce() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    }
  }
  /// What the accumulated values of row r are multiplied by; 0 where the row saw no key.
  __device__ inline float normaliser(int r) const { return sum[r] > 0 ? 1 / sum[r] : 0.0f; }
};

/// d[4 i + 2 r + c] *= factor[r].
template <int N>
__device__ inline void scale_rows(float (&d)[N], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < N / 4; ++i)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      d[4 * i + 2 * r] *= factor[r];
      d[4 * i + 2 * r + 1] *= factor[r];
    }
}

}  // namespace vlmest::kernels::attention
