// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/check.hpp>
#include <kernels/cuda/counter_random.cuh>
#include <kernels/cuda/element.cuh>
#include <kernels/cuda/fill.hpp>

namespace vlmest::cuda {
namespace {

constexpr int threads = 256;
/// Enough to fill every GPU; the loop in each kernel takes the rest.
constexpr std::int64_t most_blocks = 4096;

unsigned blocks_for(std::int64_t n) {
  const std::int64_t blocks = (n + threads - 1) / threads;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

template <class T>
__global__ void uniform_kernel(T* data, std::int64_t n, float lo, float hi, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < n; i += step)
    data[i] = static_cast<T>(lo + (hi - lo) * uniform(seed, static_cast<std::uint64_t>(i)));
}

template <class T>
__global__ void index_kernel(T* data, std::int64_t n, std::int64_t bound, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < n; i += step)
    data[i] = static_cast<T>(uniform_index(seed, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(bound)));
}

template <class T>
void launch_uniform(void* data, std::int64_t n, float lo, float hi, std::uint64_t seed, cudaStream_t stream) {
  uniform_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<T*>(data), n, lo, hi, seed);
  check(cudaGetLastError());
}

DType part_of(DType t) {
  return t == DType::complex128  ? DType::fp64
         : t == DType::complex64 ? DType::fp32
         : t == DType::complex32 ? DType::fp16
                                 : t;
}

}  // namespace

void fill_uniform(void* data, Elements n, DType type, float lo, float hi, std::uint64_t seed, cudaStream_t stream) {
  const std::int64_t parts = is_complex(type) ? checked_mul(n.value(), 2) : n.value();
  if (parts == 0) return;
  if (part_of(type) == DType::fp64) return launch_uniform<double>(data, parts, lo, hi, seed, stream);
  dispatch(part_of(type),
           [&](auto element) { launch_uniform<typename decltype(element)::type>(data, parts, lo, hi, seed, stream); });
}

void fill_indices(void* data, Elements n, DType type, std::int64_t bound, std::uint64_t seed, cudaStream_t stream) {
  if (bound < 1 || bound > UINT32_MAX)
    throw Error("fill_indices", "a bound of " + std::to_string(bound), "give 1 to 4294967295");
  if (type != DType::int64 && type != DType::int32)
    throw Error("fill_indices", "indices of type " + std::string(name(type)), "use int64 or int32");
  if (n == Elements{}) return;
  if (type == DType::int64)
    index_kernel<<<blocks_for(n.value()), threads, 0, stream>>>(static_cast<std::int64_t*>(data), n.value(), bound,
                                                                seed);
  else
    index_kernel<<<blocks_for(n.value()), threads, 0, stream>>>(static_cast<std::int32_t*>(data), n.value(), bound,
                                                                seed);
  check(cudaGetLastError());
}

void poison(void* data, Bytes size, cudaStream_t stream) {
  if (size > Bytes{}) check(cudaMemsetAsync(data, 0xFF, static_cast<std::size_t>(size.value()), stream));
}

}  // namespace vlmest::cuda
