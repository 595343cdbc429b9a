// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/check.hpp>
#include <kernels/cuda/vector.cuh>

/// out[i] = f(a[i], b[i]) over dense tensors of one type, computed in fp32 and rounded once.
namespace vlmest::cuda {

inline constexpr int binary_threads = 256;

/// Below this many vectors a thread takes one pair only, so that all multiprocessors have work; all of them are in
/// flight at once.
inline constexpr std::int64_t small_binary = 1 << 18;

template <int Unrolled, class T, int V, class F>
__global__ void __launch_bounds__(binary_threads) binary_kernel(const T* a, const T* b, T* out, std::int64_t n, F f) {
  using Data = Vector<T, V>;
  const std::int64_t vectors = n / V, tail = vectors * V;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (binary_threads * Unrolled) + threadIdx.x;
  Data x[Unrolled], y[Unrolled];
#pragma unroll
  for (int u = 0; u < Unrolled; ++u) {
    const std::int64_t i = first + u * binary_threads;
    if (i >= vectors) continue;
    x[u] = load_vector(reinterpret_cast<const Data*>(a) + i);
    y[u] = load_vector(reinterpret_cast<const Data*>(b) + i);
  }
#pragma unroll
  for (int u = 0; u < Unrolled; ++u) {
    const std::int64_t i = first + u * binary_threads;
    if (i >= vectors) continue;
    float v[V], w[V];
    unpack(x[u], v);
    unpack(y[u], w);
#pragma unroll
    for (int e = 0; e < V; ++e) v[e] = f(v[e], w[e]);
    store_vector(reinterpret_cast<Data*>(out) + i, packed<T>(v));
  }
  if (blockIdx.x == 0 && tail + threadIdx.x < n)  // fewer than V elements are left
    store(out + tail + threadIdx.x, f(load(a + tail + threadIdx.x), load(b + tail + threadIdx.x)));
}

/// `out` may be a or b. `where` names the kernel in messages.
template <class F>
void launch_binary(DType type, std::int64_t n, const void* a, const void* b, void* out, F f, const char* where,
                   cudaStream_t stream) {
  dispatch_wide(type, [&](auto element) {
    using T = typename decltype(element)::type;
    dispatch_vector<static_cast<int>(sizeof(T))>(aligned_bytes(0, {a, b, out}), [&](auto elements) {
      const std::int64_t vectors = n / elements;
      const auto launch = [&](auto unrolled) {
        const std::int64_t blocks = ceil_div(vectors > 0 ? vectors : 1, binary_threads * unrolled);
        binary_kernel<unrolled, T, elements><<<grid(blocks, where), binary_threads, 0, stream>>>(
            static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), n, f);
      };
      if (vectors <= small_binary)
        launch(std::integral_constant<int, 1>{});
      else
        launch(std::integral_constant<int, 2>{});
    });
  });
  check(cudaGetLastError());
}

}  // namespace vlmest::cuda
