// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <kernels/cuda/check.hpp>
#include <kernels/softmax/online.cuh>
#include <kernels/softmax/softmax.hpp>

namespace vlmest::kernels {
namespace {

using cuda::Vector;

template <class In, class Out, int V, int Held>
__global__ void __launch_bounds__(cuda::row_threads(Held), cuda::row_blocks(Held))
    held_softmax(const Vector<In, V>* x, Vector<Out, V>* y, std::int64_t rows, int row_vectors) {
  __shared__ typename cuda::RowReduction<float>::Shared shared;
  cuda::RowReduction<float> over_row(shared);
  const std::int64_t row = cuda::own_row(), offset = row * row_vectors;
  const int vectors = row < rows ? row_vectors : 0;  // the others of a block only take part in its barriers
  const int step = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);

  Vector<In, V> held[Held];
#pragma unroll
  for (int k = 0; k < Held; ++k)
    if (first + k * step < vectors) held[k] = x[offset + first + k * step];

  float largest = -INFINITY;
#pragma unroll
  for (int k = 0; k < Held; ++k) {
    if (first + k * step >= vectors) continue;
    float v[V];
    cuda::unpack(held[k], v);
#pragma unroll
    for (int i = 0; i < V; ++i) largest = fmaxf(largest, v[i]);
    cuda::keep_packed(held[k]);
  }
  largest = over_row(largest, cuda::Largest{});

  float sum = 0;
#pragma unroll
  for (int k = 0; k < Held; ++k) {
    if (first + k * step >= vectors) continue;
    float v[V];
    cuda::unpack(held[k], v);
#pragma unroll
    for (int i = 0; i < V; ++i) sum += exponential(v[i] - largest);
    cuda::keep_packed(held[k]);
  }
  const float scale = 1 / over_row(sum, cuda::Sum{});

#pragma unroll
  for (int k = 0; k < Held; ++k) {
    if (first + k * step >= vectors) continue;
    float v[V];
    cuda::unpack(held[k], v);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = exponential(v[i] - largest) * scale;
    y[offset + first + k * step] = cuda::packed<Out>(v);
  }
}

/// For rows that do not fit into registers: one block a row.
template <class In, class Out, int V>
__global__ void __launch_bounds__(cuda::row_threads(0), cuda::row_blocks(0))
    long_softmax(const Vector<In, V>* x, Vector<Out, V>* y, int vectors) {
  __shared__ typename cuda::RowReduction<Normaliser>::Shared shared;
  cuda::RowReduction<Normaliser> over_row(shared);
  const std::int64_t offset = static_cast<std::int64_t>(blockIdx.x) * vectors;
  const int step = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);

  Normaliser n = nothing();
#pragma unroll 4
  for (int at = first; at < vectors; at += step) {
    float v[V];
    cuda::unpack(x[offset + at], v);
    include(n, v);
  }
  n = over_row(n, Join{});
  const float scale = 1 / n.sum;
#pragma unroll 4
  for (int at = first; at < vectors; at += step) {
    float v[V];
    cuda::unpack(x[offset + at], v);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = exponential(v[i] - n.largest) * scale;
    y[offset + at] = cuda::packed<Out>(v);
  }
}

template <class In, class Out, int V>
void launch(const Softmax& op, const SoftmaxOperands& o, cudaStream_t stream) {
  const std::int64_t vectors = op.width / V;
  const cuda::RowLaunch r = cuda::row_launch(op.rows, vectors, "softmax kernel");
  const auto* const x = static_cast<const Vector<In, V>*>(o.x);
  auto* const y = static_cast<Vector<Out, V>*>(o.y);
  cuda::dispatch_held(r.held, [&](auto held) {
    if constexpr (held == 0)
      long_softmax<In, Out, V><<<r.blocks, r.threads, 0, stream>>>(x, y, static_cast<int>(vectors));
    else
      held_softmax<In, Out, V, held><<<r.blocks, r.threads, 0, stream>>>(x, y, op.rows, static_cast<int>(vectors));
  });
  cuda::check(cudaGetLastError());
}

/// Calls f with both types; the two 16-bit ones are not mixed.
template <class F>
void dispatch_pair(DType in, DType out, F&& f) {
  cuda::dispatch_wide(in, [&](auto first) {
    cuda::dispatch_wide(out, [&](auto second) {
      using In = typename decltype(first)::type;
      using Out = typename decltype(second)::type;
      if constexpr (sizeof(In) == 2 && sizeof(Out) == 2 && !std::is_same_v<In, Out>)
        throw Error("softmax kernel", "bf16 and fp16 mixed", "use one of them, or fp32 on one side");
      else
        f(first, second);
    });
  });
}

}  // namespace

FusedSoftmax::FusedSoftmax(const Softmax& op) : op_(op) {
  dispatch_pair(op.in, op.out, [](auto, auto) {});
  if (op.safe) throw Error("softmax kernel", "a safe softmax", "take the op without `safe`");
  if (op.rows < 1 || op.width < 1 || op.width > INT32_MAX)
    throw Error("softmax kernel", "needs rows and a width below 2^31");
}

void FusedSoftmax::operator()(const SoftmaxOperands& o, cudaStream_t stream) const {
  dispatch_pair(op_.in, op_.out, [&](auto first, auto second) {
    using In = typename decltype(first)::type;
    using Out = typename decltype(second)::type;
    // As many elements at once as both sides' alignment allows; the wider type fills an access.
    const auto aligned = [&](int size, const void* address) {
      return cuda::aligned_bytes(op_.width * size, {address}) / size;
    };
    constexpr int widest = std::max(sizeof(In), sizeof(Out));
    const int most = std::min(aligned(sizeof(In), o.x), aligned(sizeof(Out), o.y));
    cuda::dispatch_vector<widest>(most * widest, [&](auto elements) { launch<In, Out, elements>(op_, o, stream); });
  });
}

}  // namespace vlmest::kernels
