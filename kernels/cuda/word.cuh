// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/vector.cuh>

/// Plain bytes, for kernels that only move them.
namespace vlmest::cuda {

/// Calls f with the type of the largest word, of 16, 4, 2 or 1 bytes, that `bytes` allows.
template <class F>
void dispatch_word(int bytes, F&& f) {
  if (bytes >= 16) return std::forward<F>(f)(Type<uint4>{});
  if (bytes >= 4) return std::forward<F>(f)(Type<std::uint32_t>{});
  if (bytes >= 2) return std::forward<F>(f)(Type<std::uint16_t>{});
  std::forward<F>(f)(Type<std::uint8_t>{});
}

template <class Word>
__device__ inline Word all_ones() {
  if constexpr (sizeof(Word) == 16)
    return make_uint4(~0u, ~0u, ~0u, ~0u);
  else
    return static_cast<Word>(~Word{});
}

}  // namespace vlmest::cuda
