// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda.h>

/// Transaction barriers and the bulk tensor copy engine (compute capability 9.0; PTX ISA, "mbarrier" and
/// "cp.async.bulk.tensor"). Barriers are addresses in shared memory of 8-byte words.
namespace vlmest::kernels::attention {

__device__ inline void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to the copy engine; a block barrier for the other threads must follow.
__device__ inline void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
__device__ inline void barrier_arrive(std::uint32_t barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared::cta.b64 state, [%0];\n}\n" ::"r"(barrier) : "memory");
}
/// One arrival, and the phase also waits for `bytes` that the copy engine writes.
__device__ inline void barrier_expect(std::uint32_t barrier, int bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}\n" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}
__device__ inline bool barrier_passed(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t passed;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}\n"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed != 0;
}
/// Waits until the phase of the given parity has completed. A barrier that never does would hang the device: after
/// some ten seconds a store to address 0 ends the kernel with cudaErrorIllegalAddress. (A trap would be another way out
/// of the warpgroup's branch: the compiler then no longer grants it setmaxnreg's registers and spills.)
__device__ inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  if (barrier_passed(barrier, parity)) return;
  const auto now = [] {  // in units of 2^32 ns
    std::uint32_t t;
    asm volatile("mov.u32 %0, %%globaltimer_hi;\n" : "=r"(t));
    return t;
  };
  const std::uint32_t start = now();
  while (!barrier_passed(barrier, parity))
    if (now() - start > 2) asm volatile("st.global.u32 [%0], %1;\n" ::"l"(0ull), "r"(barrier) : "memory");
}

/// One box at (column, row, matrix) of a three-dimensional tensor into shared memory; its bytes count on `barrier`.
/// What lies outside the tensor arrives as zeros.
__device__ inline void load_box(std::uint32_t shared, const CUtensorMap& map, std::uint32_t barrier, int column,
                                int row, int matrix) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];\n" ::"r"(shared),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(barrier), "r"(column), "r"(row), "r"(matrix)
      : "memory");
}
__device__ inline void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(reinterpret_cast<std::uint64_t>(&map)) : "memory");
}

/// Gives registers of this warpgroup back to the block, or takes more of them.
template <int Registers>
__device__ inline void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Registers));
}
template <int Registers>
__device__ inline void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Registers));
}

/// Named barriers of the block (0 is __syncthreads): `threads` of them arrive, those that synchronise wait for all.
__device__ inline void named_sync(int id, int threads) {
  asm volatile("barrier.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_arrive(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace vlmest::kernels::attention
