// SPDX-License-Identifier: Apache-2.0
#include <kernels/cross_entropy/cross_entropy.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/softmax/online.cuh>

namespace vlmest::kernels {
namespace {

using cuda::Vector;

constexpr int threads = 512;
/// Vectors that a thread has in flight: 3 blocks of 32 KiB on a multiprocessor.
constexpr int unrolled = 4;

/// The part of a row that whole aligned vectors cover: `head` elements before it, `tail` behind it. Rows of an odd
/// vocabulary start anywhere.
struct Aligned {
  std::int64_t head, vectors, tail;
};
template <class T>
__device__ Aligned aligned_part(const T* row, std::int64_t n) {
  constexpr std::int64_t v = cuda::widest<T>;
  const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % v);
  const std::int64_t ahead = (v - behind) % v, head = ahead < n ? ahead : n, vectors = (n - head) / v;
  return {head, vectors, n - head - vectors * v};
}

template <class T>
__global__ void __launch_bounds__(threads, 3)
    row_losses(const T* __restrict__ logits, const std::int64_t* __restrict__ targets, float* losses,
               std::int64_t vocab, std::int64_t ignore_index) {
  __shared__ typename cuda::RowReduction<Normaliser>::Shared shared;
  cuda::RowReduction<Normaliser> over_row(shared);
  const std::int64_t row = blockIdx.x, target = targets[row];
  if (target == ignore_index) {
    if (threadIdx.x == 0) losses[row] = 0;
    return;
  }
  const T* const x = logits + row * vocab;
  const Aligned part = aligned_part(x, vocab);
  constexpr int v = cuda::widest<T>;
  const auto* const vectors = reinterpret_cast<const Vector<T, v>*>(x + part.head);

  Normaliser n = nothing();
  std::int64_t at = threadIdx.x;
  for (; at + (unrolled - 1) * threads < part.vectors; at += unrolled * threads) {
    Vector<T, v> loaded[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) loaded[u] = cuda::load_vector(vectors + at + u * threads);
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      float values[v];
      cuda::unpack(loaded[u], values);
      include(n, values);
    }
  }
  for (; at < part.vectors; at += threads) {
    float values[v];
    cuda::unpack(cuda::load_vector(vectors + at), values);
    include(n, values);
  }
  const std::int64_t edge = threadIdx.x;  // head and tail are shorter than a vector
  if (edge < part.head) include<1>(n, {cuda::load(x + edge)});
  if (edge < part.tail) include<1>(n, {cuda::load(x + vocab - part.tail + edge)});
  n = over_row(n, Join{});
  if (threadIdx.x == 0)
    losses[row] = target >= 0 && target < vocab ? logf(n.sum) + (n.largest - cuda::load(x + target)) : NAN;
}

/// One block: every thread adds up its share, and all shares are added in the order of the threads.
__global__ void __launch_bounds__(threads) mean_loss(const float* losses, const std::int64_t* targets, float* mean,
                                                     std::int64_t rows, std::int64_t ignore_index) {
  __shared__ typename cuda::RowReduction<float>::Shared shared;
  cuda::RowReduction<float> over_rows(shared);
  float sum = 0, counted = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < rows; i += threads) {
    sum += losses[i];
    counted += targets[i] != ignore_index ? 1.0f : 0.0f;
  }
  sum = over_rows(sum, cuda::Sum{});
  counted = over_rows(counted, cuda::Sum{});
  if (threadIdx.x == 0) *mean = sum / counted;
}

}  // namespace

OnlineCrossEntropy::OnlineCrossEntropy(const CrossEntropy& op, std::int64_t ignore_index)
    : op_(op), ignore_index_(ignore_index) {
  cuda::dispatch_wide(op.dtype, [](auto) {});
  if (op.rows < 1 || op.vocab < 1) throw Error("cross-entropy kernel", "needs rows and a vocabulary");
  cuda::grid(op.rows, "cross-entropy kernel");
}

void OnlineCrossEntropy::operator()(const CrossEntropyOperands& o, cudaStream_t stream) const {
  cuda::dispatch_wide(op_.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    row_losses<T><<<cuda::grid(op_.rows, "cross-entropy kernel"), threads, 0, stream>>>(
        static_cast<const T*>(o.logits), o.targets, o.losses, op_.vocab, ignore_index_);
  });
  cuda::check(cudaGetLastError());
  mean_loss<<<1, threads, 0, stream>>>(o.losses, o.targets, o.mean, op_.rows, ignore_index_);
  cuda::check(cudaGetLastError());
}

}  // namespace vlmest::kernels
