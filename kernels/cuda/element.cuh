// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <vlmest/tensor/dtype.hpp>

namespace vlmest::cuda {

using fp16 = __half;
using bf16 = __nv_bfloat16;
using fp8 = __nv_fp8_e4m3;  ///< the type of weights and activations; e5m2 (gradients) is not used here

/// Carries a type as a value: `dispatch(dtype, [&](auto type) { using T = typename decltype(type)::type; … })`.
template <class T>
struct Type {
  using type = T;
};

template <class T>
__host__ __device__ inline float to_float(T value) {
  return static_cast<float>(value);
}
/// Rounds to nearest even; fp8 saturates at 448.
template <class T>
__host__ __device__ inline T from_float(float value) {
  return static_cast<T>(value);
}

template <class T>
__host__ __device__ inline float load(const T* address) {
  return to_float(*address);
}
template <class T>
__host__ __device__ inline void store(T* address, float value) {
  *address = from_float<T>(value);
}

/// Calls f with the C++ type that holds one element of `t`: fp32 and tf32 (float), fp16, bf16, fp8. Throws Error for
/// other types, which the kernels that use this do not take.
template <class F>
decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::fp32:
    case DType::tf32: return std::forward<F>(f)(Type<float>{});
    case DType::fp16: return std::forward<F>(f)(Type<fp16>{});
    case DType::bf16: return std::forward<F>(f)(Type<bf16>{});
    case DType::fp8: return std::forward<F>(f)(Type<fp8>{});
    default: throw Error("kernel", "no kernel for " + std::string(name(t)), "use fp32, bf16, fp16 or fp8");
  }
}

/// As dispatch, without fp8: what a framework's normalisations, activations and attention take.
template <class F>
decltype(auto) dispatch_wide(DType t, F&& f) {
  switch (t) {
    case DType::fp32: return std::forward<F>(f)(Type<float>{});
    case DType::fp16: return std::forward<F>(f)(Type<fp16>{});
    case DType::bf16: return std::forward<F>(f)(Type<bf16>{});
    default: throw Error("kernel", "no kernel for " + std::string(name(t)), "use fp32, bf16 or fp16");
  }
}

}  // namespace vlmest::cuda
