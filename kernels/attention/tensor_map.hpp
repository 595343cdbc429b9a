// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda.h>

#include <vlmest/tensor/dtype.hpp>

namespace vlmest::kernels::attention {

/// Describes a contiguous tensor [matrices, rows, columns] of bf16 or fp16 to the copy engine, in boxes of
/// [1, box_rows, box_columns]. box_columns is 64 (laid out with the 128-byte swizzle) or 16 (with the 32-byte one).
/// Elements of a box that lie outside the tensor arrive as zeros. The driver's function is looked up at run time, so
/// that no program must be linked to libcuda. Throws Error where the driver refuses: the address is not aligned to 16
/// bytes, or a row is no multiple of 16 bytes.
CUtensorMap tensor_map(const void* data, DType type, std::int64_t matrices, std::int64_t rows, std::int64_t columns,
                       int box_rows, int box_columns);

}  // namespace vlmest::kernels::attention
