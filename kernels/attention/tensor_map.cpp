// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include <kernels/attention/tensor_map.hpp>
#include <kernels/cuda/check.hpp>

namespace vlmest::kernels::attention {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode driver_function() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cuda::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || !found)
    throw Error("tensor map", "the driver has no cuTensorMapEncodeTiled", "use a driver of CUDA 12 or newer");
  return reinterpret_cast<Encode>(found);
}

}  // namespace

CUtensorMap tensor_map(const void* data, DType type, std::int64_t matrices, std::int64_t rows, std::int64_t columns,
                       int box_rows, int box_columns) {
  static const Encode encode = driver_function();
  const auto count = [](std::int64_t n) { return static_cast<cuuint64_t>(n); };
  // Fastest dimension first; the strides are those of the second and third, in bytes.
  const std::array<cuuint64_t, 3> sizes{count(columns), count(rows), count(matrices)};
  const std::array<cuuint64_t, 2> strides{count(checked_mul(columns, 2)),
                                          count(checked_mul(checked_mul(columns, rows), 2))};
  const std::array<cuuint32_t, 3> box{static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows), 1};
  const std::array<cuuint32_t, 3> steps{1, 1, 1};
  CUtensorMap map{};
  const CUresult status =
      encode(&map, type == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3,
             const_cast<void*>(data), sizes.data(), strides.data(), box.data(), steps.data(),
             CU_TENSOR_MAP_INTERLEAVE_NONE, box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_32B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw Error("tensor map",
                "the driver refuses a tensor of " + std::to_string(matrices) + " x " + std::to_string(rows) + " x " +
                    std::to_string(columns) + " (error " + std::to_string(static_cast<int>(status)) + ")",
                "the address and the bytes of a row must be multiples of 16");
  return map;
}

}  // namespace vlmest::kernels::attention
