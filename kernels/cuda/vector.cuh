// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include <kernels/cuda/element.cuh>

namespace vlmest::cuda {

/// V elements that one instruction moves. They are kept as whole registers: an array of 16-bit elements would take one
/// register for each of them.
template <class T, int V>
struct alignas(sizeof(T) * V) Vector {
  static_assert(sizeof(T) * V <= 16, "the widest access has 16 bytes");
  using Word = std::conditional_t<sizeof(T) * V >= 4, std::uint32_t, std::uint16_t>;
  static constexpr int count = static_cast<int>(sizeof(T) * V / sizeof(Word));
  static constexpr int share = V / count;  ///< elements of a word: 1 or 2
  Word words[count];
};

/// Elements of T in the widest access.
template <class T>
inline constexpr int widest = 16 / static_cast<int>(sizeof(T));

/// The elements of one word.
template <class T>
__device__ inline void unpack_word(std::uint32_t word, float* to) {
  if constexpr (std::is_same_v<T, float>) {
    to[0] = __uint_as_float(word);
  } else if constexpr (std::is_same_v<T, bf16>) {  // the upper half of a float
    to[0] = __uint_as_float(word << 16);
    to[1] = __uint_as_float(word & 0xffff0000u);
  } else {
    const __half2_raw raw{static_cast<unsigned short>(word & 0xffffu), static_cast<unsigned short>(word >> 16)};
    const float2 both = __half22float2(__half2(raw));
    to[0] = both.x;
    to[1] = both.y;
  }
}
template <class T>
__device__ inline std::uint32_t packed_word(const float* from) {
  if constexpr (std::is_same_v<T, float>) {
    return __float_as_uint(from[0]);
  } else if constexpr (std::is_same_v<T, bf16>) {
    const __nv_bfloat162_raw raw = __floats2bfloat162_rn(from[0], from[1]);
    return static_cast<std::uint32_t>(raw.x) | static_cast<std::uint32_t>(raw.y) << 16;
  } else {
    const __half2_raw raw = __floats2half2_rn(from[0], from[1]);
    return static_cast<std::uint32_t>(raw.x) | static_cast<std::uint32_t>(raw.y) << 16;
  }
}

/// fp32, bf16 and fp16 to fp32, and back, rounded to nearest even.
template <class T, int V>
__device__ inline void unpack(const Vector<T, V>& from, float (&to)[V]) {
  using Data = Vector<T, V>;
#pragma unroll
  for (int w = 0; w < Data::count; ++w) {
    if constexpr (sizeof(typename Data::Word) == 4)
      unpack_word<T>(from.words[w], to + w * Data::share);
    else
      to[w] = to_float(__builtin_bit_cast(T, from.words[w]));
  }
}
template <class T, int V>
__device__ inline Vector<T, V> packed(const float (&from)[V]) {
  using Data = Vector<T, V>;
  Data to;
#pragma unroll
  for (int w = 0; w < Data::count; ++w) {
    if constexpr (sizeof(typename Data::Word) == 4)
      to.words[w] = packed_word<T>(from + w * Data::share);
    else
      to.words[w] = __builtin_bit_cast(std::uint16_t, from_float<T>(from[w]));
  }
  return to;
}

/// One access of the whole vector: member by member, the compiler splits some of them.
template <class T, int V>
__device__ inline Vector<T, V> load_vector(const Vector<T, V>* from) {
  if constexpr (sizeof(*from) == 16)
    return __builtin_bit_cast(Vector<T, V>, *reinterpret_cast<const uint4*>(from));
  else
    return *from;
}
template <class T, int V>
__device__ inline void store_vector(Vector<T, V>* to, const Vector<T, V>& v) {
  if constexpr (sizeof(v) == 16)
    *reinterpret_cast<uint4*>(to) = __builtin_bit_cast(uint4, v);
  else
    *to = v;
}

/// Makes the compiler forget what it has unpacked from v: values that are needed again are unpacked again, instead of
/// taking twice the registers from here to there.
template <class T, int V>
__device__ inline void keep_packed(Vector<T, V>& v) {
  if constexpr (Vector<T, V>::share == 2) {
#pragma unroll
    for (int w = 0; w < Vector<T, V>::count; ++w) asm volatile("" : "+r"(v.words[w]));
  }
}

/// The bytes of the widest access, 16, 8, 4, 2 or 1, that stays aligned at every one of these addresses and after every
/// `stride` bytes from there. A null address is one that is not used.
inline int aligned_bytes(std::int64_t stride, std::initializer_list<const void*> addresses) {
  std::uint64_t bits = static_cast<std::uint64_t>(stride) | 16u;
  for (const void* a : addresses) bits |= reinterpret_cast<std::uintptr_t>(a);
  return static_cast<int>(bits & (~bits + 1));
}

/// Calls f with the number of elements of `size` bytes that it moves at once, as a constant: what fills 16 bytes, what
/// fills 4, or one. Kernels exist for these three.
template <int Size, class F>
void dispatch_vector(int bytes, F&& f) {
  if (bytes >= 16) return std::forward<F>(f)(std::integral_constant<int, 16 / Size>{});
  if constexpr (Size < 4)
    if (bytes >= 4) return std::forward<F>(f)(std::integral_constant<int, 4 / Size>{});
  std::forward<F>(f)(std::integral_constant<int, 1>{});
}

/// `n` as the x dimension of a grid. Throws Error where it has no room.
inline unsigned grid(std::int64_t n, const char* where) {
  if (n < 1 || n > INT32_MAX)
    throw Error(where, "needs " + std::to_string(n) + " blocks, a grid has 1 to 2147483647", "take a smaller size");
  return static_cast<unsigned>(n);
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace vlmest::cuda
