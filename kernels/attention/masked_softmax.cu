// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <kernels/attention/masked_softmax.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/softmax/online.cuh>

namespace vlmest::kernels::attention {
namespace {

using cuda::Vector;

/// One block a row. The first reading gives the largest score and the sum, the second one the result.
template <class T, int V>
__global__ void __launch_bounds__(256)
    masked_softmax_kernel(Vector<T, V>* scores, int q_len, int kv_len, bool causal, float scale) {
  __shared__ typename cuda::RowReduction<Normaliser>::Shared shared;
  cuda::RowReduction<Normaliser> over_row(shared);
  const std::int64_t row = blockIdx.x;
  const int token = static_cast<int>(row % q_len);
  const int visible = causal ? token + 1 + kv_len - q_len : kv_len;
  Vector<T, V>* const line = scores + row * (kv_len / V);
  const auto read = [&](int at, float(&v)[V]) {
    cuda::unpack(cuda::load_vector(line + at), v);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = at * V + i < visible ? v[i] * scale : -INFINITY;
  };

  Normaliser n = nothing();
#pragma unroll 4
  for (int at = threadIdx.x; at < kv_len / V; at += blockDim.x) {
    float v[V];
    read(at, v);
    include(n, v);
  }
  n = over_row(n, Join{});
  const float from = origin(n.largest);
  const float factor = n.sum > 0 ? 1 / n.sum : 0;
#pragma unroll 4
  for (int at = threadIdx.x; at < kv_len / V; at += blockDim.x) {
    float v[V];
    read(at, v);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = exponential(v[i] - from) * factor;
    cuda::store_vector(line + at, cuda::packed<T>(v));
  }
}

}  // namespace

void masked_softmax(const Attention& op, void* scores, cudaStream_t stream) {
  const auto rows = static_cast<unsigned>(op.batch * op.heads * op.q_len);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(op.head_dim)));
  const auto q_len = static_cast<int>(op.q_len);
  const auto kv_len = static_cast<int>(op.kv_len);
  const auto launch = [&](auto type, auto elements) {
    using T = typename decltype(type)::type;
    constexpr int V = elements;
    masked_softmax_kernel<T, V>
        <<<rows, 256, 0, stream>>>(static_cast<Vector<T, V>*>(scores), q_len, kv_len, op.causal, scale);
    cuda::check(cudaGetLastError());
  };
  const auto launch_type = [&](auto type) {
    if (kv_len % 8 == 0)
      launch(type, std::integral_constant<int, 8>{});
    else
      launch(type, std::integral_constant<int, 1>{});
  };
  if (op.dtype == DType::bf16)
    launch_type(cuda::Type<cuda::bf16>{});
  else
    launch_type(cuda::Type<cuda::fp16>{});
}

}  // namespace vlmest::kernels::attention
