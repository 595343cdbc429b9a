// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <vlmest/op/memory.hpp>

namespace vlmest {

/// One kernel over tensors of one size and type that lie dense in memory: arithmetic element by element, and the plain
/// streams that bound it (McCalpin, Memory Bandwidth and Machine Balance in Current High Performance Computers, IEEE
/// TCCA Newsletter, 1995): a copy, a read that keeps nothing, a write that needs nothing.
struct Elementwise {
  enum class Kind : std::uint8_t { copy, read, write, add, mul, silu, gelu, silu_mul } kind = Kind::copy;
  std::int64_t elements = 1;  ///< of each tensor
  DType dtype = DType::bf16;
};

/// How a kind is called, the tensors it reads and those it writes.
struct ElementwiseInfo {
  std::string_view name;
  int read;
  int written;
};
inline constexpr std::array<ElementwiseInfo, 8> elementwise_table{{{"copy", 1, 1},
                                                                   {"read", 1, 0},
                                                                   {"write", 0, 1},
                                                                   {"add", 2, 1},
                                                                   {"mul", 2, 1},
                                                                   {"silu", 1, 1},
                                                                   {"gelu", 1, 1},
                                                                   {"silu_mul", 2, 1}}};
constexpr const ElementwiseInfo& info(Elementwise::Kind k) { return elementwise_table[static_cast<std::size_t>(k)]; }
constexpr std::string_view name(Elementwise::Kind k) { return info(k).name; }

/// As one kernel written for it.
constexpr MemoryOp memory_op(const Elementwise& o) {
  const Bytes n = size_of(Elements(o.elements), o.dtype);
  return {
      .read = n * info(o.kind).read, .written = n * info(o.kind).written, .dtype = o.dtype, .access = Access::fused};
}
constexpr Cost cost(const Elementwise& o) { return cost(memory_op(o)); }

}  // namespace vlmest
