// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/rows.cuh>

/// Softmax sums that are kept together with their largest element and rescaled as it grows (Milakov, Gimelshein, Online
/// normalizer calculation for softmax, arXiv:1805.02867, algorithm 3 and section 3.1).
namespace vlmest::kernels {

inline constexpr float log2_e = 1.4426950408889634f;

/// exp(x); what is below the normal numbers becomes 0.
__device__ inline float exponential(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * log2_e));
  return y;
}

/// The largest of some values, and the sum of exp(value - largest).
struct Normaliser {
  float largest, sum;
};
__device__ inline Normaliser nothing() { return {-INFINITY, 0}; }
__device__ inline Normaliser from_lane(const Normaliser& n, int distance) {
  return {cuda::from_lane(n.largest, distance), cuda::from_lane(n.sum, distance)};
}
/// What exponents are measured from: the largest, or 0 where every value is -inf, whose exponentials then are 0.
__device__ inline float origin(float largest) { return largest == -INFINITY ? 0 : largest; }

struct Join {
  __device__ Normaliser operator()(const Normaliser& a, const Normaliser& b) const {
    const float largest = fmaxf(a.largest, b.largest), from = origin(largest);
    return {largest, a.sum * exponential(a.largest - from) + b.sum * exponential(b.largest - from)};
  }
};

/// n with V more values: one rescaling for all of them.
template <int V>
__device__ inline void include(Normaliser& n, const float (&values)[V]) {
  float largest = n.largest;
#pragma unroll
  for (int i = 0; i < V; ++i) largest = fmaxf(largest, values[i]);
  const float from = origin(largest);
  float sum = n.sum * exponential(n.largest - from);
#pragma unroll
  for (int i = 0; i < V; ++i) sum += exponential(values[i] - from);
  n = {largest, sum};
}

}  // namespace vlmest::kernels
