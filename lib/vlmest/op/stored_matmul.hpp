// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// out[m, n] = a[m, k] x b[k, n] in one kernel that reads b as it is stored, in fewer bits than it computes in, with
/// scales and zero points: Marlin, bitsandbytes' gemm_4bit, the kernels of serving engines.
struct StoredMatmul {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  Bytes stored{};             ///< of b, with what belongs to it
  DType dtype = DType::bf16;  ///< of a and the result
  Bytes workspace{};
};

constexpr Macs macs(const StoredMatmul& o) { return Macs(checked_mul(o.m, checked_mul(o.n, o.k))); }

/// FLOPs as of any product; FlopCounterMode knows none of these kernels and counts nothing for them.
constexpr Cost cost(const StoredMatmul& o) {
  Cost r;
  r.flops = r.flops_causal = flops(macs(o));
  r.read = o.stored + size_of(Elements(checked_mul(o.m, o.k)), o.dtype);
  r.written = size_of(Elements(checked_mul(o.m, o.n)), o.dtype);
  r.workspace = o.workspace;
  r.engine = o.dtype == DType::fp32 || o.dtype == DType::fp64 ? Engine::cuda_core : Engine::tensor_core;
  r.dtype = o.dtype;
  return r;
}

}  // namespace vlmest
