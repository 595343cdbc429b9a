// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

/// How the copy engine lays a tile of rows into shared memory and how the matrix units are told to read it: plain
/// arithmetic, also for the host, so that a test can hold the two against each other (PTX ISA, "Swizzling Modes" and
/// "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
namespace vlmest::kernels::attention {

/// The swizzle's number in a matrix descriptor.
constexpr std::uint64_t swizzle_128 = 1;
constexpr std::uint64_t swizzle_32 = 3;

/// Where byte `address` of a block aligned to 1024 bytes really lies. Rows of 128 bytes: the eight 16-byte pieces of a
/// row are permuted by the row's number modulo 8; rows of 32 bytes: the two pieces by bit 2 of the row's number.
__host__ __device__ constexpr std::uint32_t swizzled_128(std::uint32_t address) {
  return address ^ ((address >> 7 & 7) << 4);
}
__host__ __device__ constexpr std::uint32_t swizzled_32(std::uint32_t address) {
  return address ^ ((address >> 7 & 1) << 4);
}

/// A descriptor of an operand in shared memory ("Matrix Descriptor Format"): start, leading and stride offset in units
/// of 16 bytes, and the swizzle. The swizzle works on addresses, so that a descriptor can start inside its period.
///
/// - Rows along the reduced dimension ("K-major"; q, and k as the transposed b): the leading offset is not used, the
///   stride offset leads from eight rows to the next eight.
/// - Rows along the other dimension ("MN-major"; v): the leading offset leads from one swizzled block of columns to the
///   next, the stride offset from eight rows (of the reduced dimension) to the next eight.
__host__ __device__ constexpr std::uint64_t descriptor(std::uint32_t start, std::uint32_t leading, std::uint32_t stride,
                                                       std::uint64_t swizzle) {
  return static_cast<std::uint64_t>((start & 0x3ffff) >> 4) | static_cast<std::uint64_t>(leading >> 4) << 16 |
         static_cast<std::uint64_t>(stride >> 4) << 32 | swizzle << 62;
}
/// The same, `bytes` further on. Shared memory ends below the field's 256 KiB, so nothing is carried out of it.
__host__ __device__ constexpr std::uint64_t advanced(std::uint64_t descriptor, std::uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// A tile [Rows, Columns] of 16-bit elements in shared memory: Columns / 64 blocks of [Rows, 64] one after the other,
/// each with the 128-byte swizzle, then one of [Rows, 16] with the 32-byte swizzle where 16 columns remain (head sizes
/// 72 and 80). Every block is what one box of the copy engine writes.
template <int Rows, int Columns>
struct Tile {
  static constexpr int blocks = Columns / 64;
  static constexpr bool tail = Columns % 64 != 0;
  static constexpr std::uint32_t block_bytes = Rows * 128;
  static constexpr std::uint32_t tail_offset = blocks * block_bytes;
  static constexpr int bytes = tail_offset + (tail ? Rows * 32 : 0);
  static_assert(Columns % 64 == 0 || Columns % 64 == 16, "columns come in blocks of 64 and at most one of 16");
  static_assert(bytes % 1024 == 0, "the next tile must start at the swizzle's period");

  /// Columns 16 step … 16 step + 15 of the rows from first_row (a multiple of 8) on, columns being the reduced
  /// dimension. `start`: the tile's address.
  __host__ __device__ static constexpr std::uint64_t along_columns(std::uint32_t start, std::uint32_t first_row,
                                                                   std::uint32_t step) {
    if (step < 4 * blocks)
      return advanced(descriptor(start + first_row * 128, 16, 1024, swizzle_128),
                      step / 4 * block_bytes + step % 4 * 32);
    return descriptor(start + tail_offset + first_row * 32, 16, 256, swizzle_32);
  }
  /// Rows 16 step … 16 step + 15 of the columns from 64 first_block on, rows being the reduced dimension.
  __host__ __device__ static constexpr std::uint64_t along_rows(std::uint32_t start, std::uint32_t first_block,
                                                                std::uint32_t step) {
    return advanced(descriptor(start, block_bytes, 1024, swizzle_128), first_block * block_bytes + step * 16 * 128);
  }
  /// The same of the 16 last columns.
  __host__ __device__ static constexpr std::uint64_t tail_along_rows(std::uint32_t start, std::uint32_t step) {
    return advanced(descriptor(start + tail_offset, 256, 256, swizzle_32), step * 16 * 32);
  }
};

/// The columns that the kernels work on for a head size: 72 is padded to 80 with zeros, the others are taken as they
/// are. 0: no kernel.
constexpr int padded_columns(std::int64_t head_dim) {
  switch (head_dim) {
    case 64: return 64;
    case 72:
    case 80: return 80;
    case 128: return 128;
    case 256: return 256;
    default: return 0;
  }
}

}  // namespace vlmest::kernels::attention
