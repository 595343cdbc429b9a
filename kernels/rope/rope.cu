// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <kernels/cuda/check.hpp>
#include <kernels/cuda/vector.cuh>
#include <kernels/rope/rope.hpp>

namespace vlmest::kernels {
namespace {

using cuda::Vector;

constexpr int most_threads = 256;
constexpr int wanted_threads = 128;
/// Heads that a thread has in flight: two vectors each.
constexpr int unrolled = 4;

template <class T>
struct Heads {
  const T* q;
  const T* k;
  T* q_out;
  T* k_out;
  std::int64_t tokens;  ///< of all sequences
  std::int64_t rows;    ///< of angles
  int heads, kv_heads, head_dim;
};

/// V neighbours in pieces of at most 16 bytes.
template <class A, int V>
__device__ void load_floats(const A* from, float (&to)[V]) {
  constexpr int piece = V < cuda::widest<A> ? V : cuda::widest<A>;
#pragma unroll
  for (int at = 0; at < V; at += piece) {
    float values[piece];
    cuda::unpack(cuda::load_vector(reinterpret_cast<const Vector<A, piece>*>(from + at)), values);
#pragma unroll
    for (int i = 0; i < piece; ++i) to[at + i] = values[i];
  }
}

/// threadIdx: x the channels of a half, V each; y the heads; z the tokens of a block.
template <class T, class A, int V>
__global__ void __launch_bounds__(most_threads)
    turn_halves(Heads<T> a, const A* __restrict__ cos, const A* __restrict__ sin) {
  const std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  if (token >= a.tokens) return;
  const int half = a.head_dim / 2, channel = static_cast<int>(threadIdx.x) * V, all = a.heads + a.kv_heads;
  const std::int64_t angles = token % a.rows * a.head_dim + channel;
  float cos_low[V], cos_high[V], sin_low[V], sin_high[V];
  load_floats(cos + angles, cos_low);
  load_floats(cos + angles + half, cos_high);
  load_floats(sin + angles, sin_low);
  load_floats(sin + angles + half, sin_high);

  // Of head h, which counts the queries first, then the keys: where it lies in its tensor.
  const auto offset = [&](int h) {
    return (h < a.heads ? token * a.heads + h : token * a.kv_heads + h - a.heads) * a.head_dim + channel;
  };
  const int heads_apart = static_cast<int>(blockDim.y);
  for (int start = static_cast<int>(threadIdx.y); start < all; start += heads_apart * unrolled) {
    Vector<T, V> low[unrolled], high[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const int h = start + u * heads_apart;
      if (h >= all) continue;
      const T* const from = (h < a.heads ? a.q : a.k) + offset(h);
      low[u] = cuda::load_vector(reinterpret_cast<const Vector<T, V>*>(from));
      high[u] = cuda::load_vector(reinterpret_cast<const Vector<T, V>*>(from + half));
    }
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const int h = start + u * heads_apart;
      if (h >= all) continue;
      float x[V], y[V];
      cuda::unpack(low[u], x);
      cuda::unpack(high[u], y);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float was = x[i];
        x[i] = was * cos_low[i] - y[i] * sin_low[i];
        y[i] = y[i] * cos_high[i] + was * sin_high[i];
      }
      T* const to = (h < a.heads ? a.q_out : a.k_out) + offset(h);
      cuda::store_vector(reinterpret_cast<Vector<T, V>*>(to), cuda::packed<T>(x));
      cuda::store_vector(reinterpret_cast<Vector<T, V>*>(to + half), cuda::packed<T>(y));
    }
  }
}

/// Calls f with the types of the vectors and of the angles.
template <class F>
void dispatch_types(const RotaryEmbedding& op, F&& f) {
  cuda::dispatch_wide(op.dtype, [&](auto element) {
    if (op.angles == op.dtype)
      f(element, element);
    else if (op.angles == DType::fp32)
      f(element, cuda::Type<float>{});
    else
      throw Error("rope kernel", "angles of " + std::string(vlmest::name(op.angles)), "use fp32 or the heads' type");
  });
}

template <class T, class A, int V>
void launch(const RotaryEmbedding& op, const RopeOperands& o, cudaStream_t stream) {
  const std::int64_t tokens = checked_mul(op.batch, op.rows);
  const Heads<T> heads{.q = static_cast<const T*>(o.q),
                       .k = static_cast<const T*>(o.k),
                       .q_out = static_cast<T*>(o.q_out),
                       .k_out = static_cast<T*>(o.k_out),
                       .tokens = tokens,
                       .rows = op.rows,
                       .heads = static_cast<int>(op.heads),
                       .kv_heads = static_cast<int>(op.kv_heads),
                       .head_dim = static_cast<int>(op.head_dim)};
  const auto x = static_cast<unsigned>(op.head_dim / 2 / V);
  const auto groups = static_cast<unsigned>(cuda::ceil_div(op.heads + op.kv_heads, unrolled));
  const unsigned y = std::min(groups, most_threads / x);
  const unsigned z = std::clamp(wanted_threads / (x * y), 1u, 64u);  // 64: the z dimension's limit
  const unsigned blocks = cuda::grid(cuda::ceil_div(tokens, z), "rope kernel");
  turn_halves<T, A, V>
      <<<blocks, dim3(x, y, z), 0, stream>>>(heads, static_cast<const A*>(o.cos), static_cast<const A*>(o.sin));
  cuda::check(cudaGetLastError());
}

}  // namespace

FusedRope::FusedRope(const RotaryEmbedding& op) : op_(op) {
  dispatch_types(op, [](auto, auto) {});
  if (op.rotary_dim != op.head_dim)
    throw Error("rope kernel", "only a part of each head turns", "give the turning channels as heads of their own");
  if (op.head_dim < 2 || op.head_dim > 512 || op.head_dim % 2 != 0)
    throw Error("rope kernel", "a head size of " + std::to_string(op.head_dim), "use an even one up to 512");
  if (op.batch < 1 || op.rows < 1 || op.heads < 1 || op.kv_heads < 1 || op.heads > 65536 || op.kv_heads > 65536)
    throw Error("rope kernel", "needs sequences, rows and 1 to 65536 heads each");
}

void FusedRope::operator()(const RopeOperands& o, cudaStream_t stream) const {
  dispatch_types(op_, [&](auto element, auto angle) {
    using T = typename decltype(element)::type;
    using A = typename decltype(angle)::type;
    constexpr int size = sizeof(T), angle_size = sizeof(A);
    const std::int64_t half = op_.head_dim / 2;
    const int bytes = cuda::aligned_bytes(half * size, {o.q, o.k, o.q_out, o.k_out});
    // Angles are read in pieces of 16 bytes, so with that alignment they set no limit.
    const int angles = cuda::aligned_bytes(half * angle_size, {o.cos, o.sin});
    cuda::dispatch_vector<size>(angles == 16 ? bytes : std::min(bytes, angles / angle_size * size),
                                [&](auto elements) { launch<T, A, elements>(op_, o, stream); });
  });
}

}  // namespace vlmest::kernels
