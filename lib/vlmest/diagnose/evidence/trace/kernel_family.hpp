// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/trace/host_call.hpp>

/// What a kernel is, from its name alone. The words are those of the libraries: cuBLAS (nvjet_…, …gemm…, splitKreduce),
/// CUTLASS (cutlass_80_…_align2), cuDNN (…sdpa…, …fprop…, …scudnn…, bn_fw…), FlashAttention (flash_fwd…), vLLM and
/// FlashInfer (paged_attention…, BatchDecode…, bmm_…), NCCL, cuFFT, PyTorch's own (aten/src/ATen/native/cuda) and
/// Inductor's (triton_…); on AMD Tensile's products (Cijk_…, rocBLAS and hipBLASLt), MIOpen (igemm_…gtcx…, …TensorOp…,
/// MIOpenBatchNorm…) and AOTriton's attention (attn_fwd).
namespace vlmest::diagnose {

enum class KernelFamily : std::uint8_t {
  matmul,
  attention,
  convolution,
  fft,
  communication,
  optimizer,
  norm,
  softmax,
  reduction,
  copy,
  index,
  elementwise,
  other
};

inline constexpr std::array<std::string_view, 13> kernel_families{
    "matmul",  "attention", "convolution", "fft",   "communication", "optimizer", "norm",
    "softmax", "reduction", "copy",        "index", "elementwise",   "other"};
constexpr std::string_view name(KernelFamily f) { return kernel_families[static_cast<std::size_t>(f)]; }

/// Families whose kernels do less arithmetic than moving their operands takes, on every GPU.
constexpr bool moves_memory(KernelFamily f) {
  return f == KernelFamily::optimizer || f == KernelFamily::norm || f == KernelFamily::softmax ||
         f == KernelFamily::reduction || f == KernelFamily::copy || f == KernelFamily::index ||
         f == KernelFamily::elementwise || f == KernelFamily::fft;
}

/// What the name of a kernel tells.
struct KernelTraits {
  KernelFamily family = KernelFamily::other;
  bool decode = false;      ///< made for one query or row: gemv, paged attention, attention split over the keys
  bool misaligned = false;  ///< a half-precision product with loads of fewer than 16 bytes
  bool backward = false;
  bool tf32 = false;
};

namespace kernel_names {

inline std::string lower(std::string_view s) {
  std::string r(s);
  for (char& c : r) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return r;
}

/// Inductor's kernels have all operators that they were fused from in their names, be it the product that reads what
/// they write; what they are is told by their beginning (torch/_inductor/codegen/triton.py): pointwise, a reduction, a
/// persistent one, or several of them. Before torch 2.1 they had no more than the numbers of their arguments.
inline bool fused_loop(std::string_view n) {
  return n.starts_with("triton_poi_") || n.starts_with("triton_red_") || n.starts_with("triton_per_") ||
         n.starts_with("triton_for_") || n.starts_with("triton__0d1d");
}

inline KernelFamily loop_family(std::string_view n) {
  using words::has_any;
  if (n.starts_with("triton_poi_") || n.starts_with("triton_for_") || n.starts_with("triton__"))
    return KernelFamily::elementwise;
  if (has_any(n, "layer_norm", "rms_norm", "rsqrt", "batch_norm", "group_norm")) return KernelFamily::norm;
  return n.find("softmax") != n.npos ? KernelFamily::softmax : KernelFamily::reduction;
}

KernelFamily family(std::string_view n);

/// CUTLASS names the elements of a load (align1, align2, align4, align8), cuBLAS' older kernels too (ldg1, ldg2, …): in
/// 16-bit types 8 of them are 16 bytes.
bool misaligned(std::string_view n);

}  // namespace kernel_names

KernelTraits kernel_traits(std::string_view kernel);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/kernel_family.hpp>
#endif
