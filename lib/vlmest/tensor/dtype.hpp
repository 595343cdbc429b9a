// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vlmest/unit/units.hpp>

namespace vlmest {

/// Element types, spelt in JSON as name() gives them.
enum class DType : std::uint8_t {
  fp64,
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,
  int64,
  int32,
  int16,
  int8,
  uint8,
  int4,
  nf4,
  boolean,
  complex64,
  complex32,
  complex128
};

struct DTypeInfo {
  std::string_view name;
  int bits;
};

inline constexpr std::array<DTypeInfo, 17> dtype_table{{{"fp64", 64},
                                                        {"fp32", 32},
                                                        {"tf32", 32},
                                                        {"fp16", 16},
                                                        {"bf16", 16},
                                                        {"fp8", 8},
                                                        {"int64", 64},
                                                        {"int32", 32},
                                                        {"int16", 16},
                                                        {"int8", 8},
                                                        {"uint8", 8},
                                                        {"int4", 4},
                                                        {"nf4", 4},
                                                        {"bool", 8},
                                                        {"complex64", 64},
                                                        {"complex32", 32},
                                                        {"complex128", 128}}};

constexpr std::string_view name(DType t) { return dtype_table[static_cast<std::size_t>(t)].name; }
constexpr int bits(DType t) { return dtype_table[static_cast<std::size_t>(t)].bits; }

/// Storage of n elements packed without gaps; a last half-filled byte counts whole.
constexpr Bytes size_of(Elements n, DType t) {
  const int b = bits(t);
  if (b >= 8) return Bytes(checked_mul(n.value(), b >> 3));
  return Bytes(checked_add(checked_mul(n.value(), b), 7) / 8);
}

/// The type called `s`, or throws Error. torch's long names (bfloat16, float16, float32) are understood.
constexpr DType parse_dtype(std::string_view s) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i)
    if (dtype_table[i].name == s) return static_cast<DType>(i);
  if (s == "bfloat16") return DType::bf16;
  if (s == "float16" || s == "half") return DType::fp16;
  if (s == "float32" || s == "float") return DType::fp32;
  if (s == "float64") return DType::fp64;
  throw Error("dtype", "unknown type '" + std::string(s) + "'", "use one of bf16 fp16 fp32 fp8 int8 int4 nf4");
}

constexpr bool is_complex(DType t) { return t == DType::complex64 || t == DType::complex32 || t == DType::complex128; }
/// True of types that carry a gradient.
constexpr bool is_floating(DType t) {
  return t == DType::fp64 || t == DType::fp32 || t == DType::tf32 || t == DType::fp16 || t == DType::bf16 ||
         is_complex(t);
}
constexpr bool is_half(DType t) { return t == DType::bf16 || t == DType::fp16; }

}  // namespace vlmest
