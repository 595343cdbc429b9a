// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <kernels/cuda/element.cuh>

/// Pieces of matrix products that all attention kernels here share: mma.sync, ldmatrix, cp.async (compute capability
/// 8.0 and above) and rounding of accumulators into operands. Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16".
namespace vlmest::kernels::attention {

/// Two neighbouring elements in one register, the first in the lower half.
__device__ inline std::uint32_t packed(float first, float second, cuda::bf16) {
  std::uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(second), "f"(first));
  return r;
}
__device__ inline std::uint32_t packed(float first, float second, cuda::fp16) {
  std::uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(second), "f"(first));
  return r;
}

/// Accumulators d[16 rows, N columns] (four per thread and column group of eight) as the operand a of the next product:
/// step k of 16 takes column groups 2 k and 2 k + 1, which hold the same rows and columns in the same threads.
template <class T, int N>
__device__ inline void round_to_operand(const float (&d)[N], std::uint32_t (&a)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) a[i] = packed(d[2 * i], d[2 * i + 1], T{});
}

/// d[16, 8] += a[16, 16] b[16, 8].
__device__ inline void mma(float* d, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1, cuda::bf16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void mma(float* d, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1, cuda::fp16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8 and receives of each
/// matrix elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4.
__device__ inline void ldmatrix(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
/// The same of the transposed matrices: elements of rows 2 (l % 4) and 2 (l % 4) + 1 of column l / 4.
__device__ inline void ldmatrix_transposed(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// Copies 16 bytes into shared memory without waiting, or writes zeros where `valid` is false (nothing is read then).
__device__ inline void copy_16(std::uint32_t shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until at most `Pending` of this thread's committed groups are under way.
template <int Pending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

}  // namespace vlmest::kernels::attention
