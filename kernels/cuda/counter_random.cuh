// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace vlmest::cuda {

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
__host__ __device__ constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// 64 random bits for position i of the sequence called `seed`: a function of both alone, so that any thread can make
/// any element. The seed is mixed first; otherwise neighbouring seeds would give shifted copies of one sequence.
__host__ __device__ constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t i) {
  return mixed(mixed(seed + 0x9e3779b97f4a7c15u) + (i + 1) * 0x9e3779b97f4a7c15u);
}

/// Uniform in [0, 1), from the upper 24 bits, which a float holds exactly.
__host__ __device__ constexpr float uniform(std::uint64_t seed, std::uint64_t i) {
  return static_cast<float>(random_bits(seed, i) >> 40) * (1.0f / 16777216.0f);
}

/// Uniform in 0 … bound - 1 (bound below 2^32): the upper half of a 32 x 32-bit product; the bias is below 2^-32 bound.
__host__ __device__ constexpr std::uint64_t uniform_index(std::uint64_t seed, std::uint64_t i, std::uint64_t bound) {
  return ((random_bits(seed, i) >> 32) * bound) >> 32;
}

}  // namespace vlmest::cuda
