// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <vlmest/tensor/dtype.hpp>

namespace vlmest::cuda {

/// Uniform in [lo, hi], rounded to `type` (fp64, fp32, tf32, fp16, bf16, fp8, and complex types, whose parts are drawn
/// one by one). Element i depends on `seed` and i alone: every seed gives other data, the same one the same.
void fill_uniform(void* data, Elements n, DType type, float lo, float hi, std::uint64_t seed, cudaStream_t stream);

/// Uniform in 0 … bound - 1 as int64 or int32, for gathers and targets. `bound` lies below 2^32.
void fill_indices(void* data, Elements n, DType type, std::int64_t bound, std::uint64_t seed, cudaStream_t stream);

/// 0xFF in every byte: NaN in every floating type, -1 in the integers. What a kernel does not write stays visible.
void poison(void* data, Bytes size, cudaStream_t stream);

}  // namespace vlmest::cuda
