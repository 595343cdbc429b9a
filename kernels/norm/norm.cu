// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/check.hpp>
#include <kernels/cuda/rows.cuh>
#include <kernels/norm/norm.hpp>

namespace vlmest::kernels {
namespace {

using cuda::Vector;

/// Count, mean and sum of squared distances from it.
struct Moments {
  float count, mean, squares;
};
__device__ inline Moments from_lane(const Moments& m, int distance) {
  return {cuda::from_lane(m.count, distance), cuda::from_lane(m.mean, distance), cuda::from_lane(m.squares, distance)};
}
/// Of two samples together (Chan, Golub, LeVeque, equations 2.1).
struct Merge {
  __device__ Moments operator()(const Moments& a, const Moments& b) const {
    const float count = a.count + b.count, share = count > 0 ? b.count / count : 0, between = b.mean - a.mean;
    return {count, a.mean + between * share, a.squares + b.squares + between * between * a.count * share};
  }
};

/// What all kernels here are given.
template <class T, int V>
struct Rows {
  const Vector<T, V>* x;
  Vector<T, V>* y;
  float* mean;
  float* rstd;
  std::int64_t rows;
  int vectors;  ///< of a row
  float reciprocal_width;
  float epsilon;
};

template <class T, int V>
__device__ void write_statistics(const Rows<T, V>& a, std::int64_t row, float mean, float rstd) {
  if (threadIdx.x != 0) return;
  if (a.mean) a.mean[row] = mean;
  if (a.rstd) a.rstd[row] = rstd;
}

/// (x - mean) * rstd * weight + bias; parameters that are null are left out.
template <class T, int V>
__device__ Vector<T, V> normalised(const Vector<T, V>& x, float mean, float rstd, const Vector<T, V>* weight,
                                   const Vector<T, V>* bias) {
  float v[V], w[V];
  cuda::unpack(x, v);
#pragma unroll
  for (int i = 0; i < V; ++i) v[i] = (v[i] - mean) * rstd;
  if (weight) {
    cuda::unpack(cuda::load_vector(weight), w);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] *= w[i];
  }
  if (bias) {
    cuda::unpack(cuda::load_vector(bias), w);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] += w[i];
  }
  return cuda::packed<T>(v);
}

template <Norm::Kind kind, class T, int V, int Held>
__global__ void __launch_bounds__(cuda::row_threads(Held), cuda::row_blocks(Held))
    held_norm(Rows<T, V> a, const Vector<T, V>* __restrict__ weight, const Vector<T, V>* __restrict__ bias) {
  __shared__ typename cuda::RowReduction<float>::Shared shared;
  cuda::RowReduction<float> over_row(shared);
  const std::int64_t row = cuda::own_row();
  const int vectors = row < a.rows ? a.vectors : 0;  // the others of a block only take part in its barriers
  const int step = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);
  const std::int64_t offset = row * a.vectors;

  Vector<T, V> held[Held];
#pragma unroll
  for (int k = 0; k < Held; ++k)
    if (first + k * step < vectors) held[k] = cuda::load_vector(a.x + offset + first + k * step);

  const auto sum_of = [&](auto of_element) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < Held; ++k) {
      if (first + k * step >= vectors) continue;
      float v[V];
      cuda::unpack(held[k], v);
#pragma unroll
      for (int i = 0; i < V; ++i) sum += of_element(v[i]);
      cuda::keep_packed(held[k]);
    }
    return over_row(sum, cuda::Sum{});
  };
  float mean = 0;
  if constexpr (kind == Norm::Kind::layer_norm) mean = sum_of([](float v) { return v; }) * a.reciprocal_width;
  const float squares = sum_of([mean](float v) { return (v - mean) * (v - mean); });
  const float rstd = rsqrtf(squares * a.reciprocal_width + a.epsilon);
  if (vectors == 0) return;

  write_statistics(a, row, mean, rstd);
#pragma unroll
  for (int k = 0; k < Held; ++k) {
    const int i = first + k * step;
    if (i < vectors)
      cuda::store_vector(a.y + offset + i,
                         normalised(held[k], mean, rstd, weight ? weight + i : nullptr, bias ? bias + i : nullptr));
  }
}

/// For rows that do not fit into registers: one block a row, which is read again for the result.
template <Norm::Kind kind, class T, int V>
__global__ void __launch_bounds__(cuda::row_threads(0), cuda::row_blocks(0))
    long_norm(Rows<T, V> a, const Vector<T, V>* __restrict__ weight, const Vector<T, V>* __restrict__ bias) {
  __shared__ typename cuda::RowReduction<Moments>::Shared shared;
  cuda::RowReduction<Moments> over_row(shared);
  const std::int64_t row = blockIdx.x, offset = row * a.vectors;
  const int step = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);

  // An RMS norm is about zero: its squares are sums already, and its mean and count stay as they are.
  Moments own{0, 0, 0};
#pragma unroll 4
  for (int at = first; at < a.vectors; at += step) {
    float v[V];
    cuda::unpack(cuda::load_vector(a.x + offset + at), v);
    Moments m{static_cast<float>(V), 0, 0};
    if constexpr (kind == Norm::Kind::layer_norm) {
#pragma unroll
      for (int i = 0; i < V; ++i) m.mean += v[i];
      m.mean /= V;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) m.squares += (v[i] - m.mean) * (v[i] - m.mean);
    own = Merge{}(own, m);
  }
  own = over_row(own, Merge{});
  const float mean = own.mean, rstd = rsqrtf(own.squares * a.reciprocal_width + a.epsilon);

  write_statistics(a, row, mean, rstd);
#pragma unroll 4
  for (int i = first; i < a.vectors; i += step)
    cuda::store_vector(a.y + offset + i, normalised(cuda::load_vector(a.x + offset + i), mean, rstd,
                                                    weight ? weight + i : nullptr, bias ? bias + i : nullptr));
}

template <Norm::Kind kind, class T, int V>
void launch(const Norm& op, float epsilon, const NormOperands& o, cudaStream_t stream) {
  const std::int64_t vectors = op.width / V;
  const cuda::RowLaunch r = cuda::row_launch(op.rows, vectors, "norm kernel");
  using Data = Vector<T, V>;
  const Rows<T, V> rows{.x = static_cast<const Data*>(o.x),
                        .y = static_cast<Data*>(o.y),
                        .mean = kind == Norm::Kind::layer_norm ? o.mean : nullptr,
                        .rstd = o.rstd,
                        .rows = op.rows,
                        .vectors = static_cast<int>(vectors),
                        .reciprocal_width = 1.0f / static_cast<float>(op.width),
                        .epsilon = epsilon};
  const auto* const weight = static_cast<const Data*>(op.parameters >= 1 ? o.weight : nullptr);
  const auto* const bias = static_cast<const Data*>(op.parameters == 2 ? o.bias : nullptr);
  cuda::dispatch_held(r.held, [&](auto held) {
    if constexpr (held == 0)
      long_norm<kind, T, V><<<r.blocks, r.threads, 0, stream>>>(rows, weight, bias);
    else
      held_norm<kind, T, V, held><<<r.blocks, r.threads, 0, stream>>>(rows, weight, bias);
  });
  cuda::check(cudaGetLastError());
}

}  // namespace

FusedNorm::FusedNorm(const Norm& op, float epsilon) : op_(op), epsilon_(epsilon) {
  cuda::dispatch_wide(op.dtype, [](auto) {});
  if (op.packed) throw Error("norm kernel", "rows that must be packed first", "copy them, then normalise the copy");
  if (op.rows < 1 || op.width < 1 || op.width > INT32_MAX || op.parameters < 0 || op.parameters > 2)
    throw Error("norm kernel", "needs rows, a width below 2^31 and at most two parameters");
}

void FusedNorm::operator()(const NormOperands& o, cudaStream_t stream) const {
  if ((op_.parameters >= 1 && !o.weight) || (op_.parameters == 2 && !o.bias))
    throw Error("norm kernel", "a parameter of the op has no address", "pass it, or take an op without it");
  cuda::dispatch_wide(op_.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    constexpr int size = sizeof(T);
    cuda::dispatch_vector<size>(cuda::aligned_bytes(op_.width * size, {o.x, o.y, o.weight, o.bias}),
                                [&](auto elements) {
                                  if (op_.kind == Norm::Kind::layer_norm)
                                    launch<Norm::Kind::layer_norm, T, elements>(op_, epsilon_, o, stream);
                                  else
                                    launch<Norm::Kind::rms_norm, T, elements>(op_, epsilon_, o, stream);
                                });
  });
}

}  // namespace vlmest::kernels
