// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/trace/kernel_family.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace kernel_names {

VLMEST_INLINE KernelFamily family(std::string_view n) {
  using words::has_any;
  if (fused_loop(n)) return loop_family(n);
  if (has_any(n, "nccl", "rccl", "cross_device_reduce", "allreduce", "all_reduce", "allgather", "all_gather",
              "reducescatter", "reduce_scatter", "nvshmem", "deep_ep"))
    return KernelFamily::communication;
  // torch._foreach_copy_ runs in optimizers and elsewhere.
  if (has_any(n, "multi_tensor_apply", "multitensorapply"))
    return has_any(n, "::copy<", "copyfunctor") ? KernelFamily::copy : KernelFamily::optimizer;
  if (has_any(n, "fused_adam", "adam_kernel")) return KernelFamily::optimizer;
  if (has_any(n, "sdpa", "flash", "fmha", "attention", "batchdecodewith", "batchprefillwith", "mmha", "dot_do_o",
              "convert_dq_to", "attn_fwd", "attn_bwd", "sage_fwd"))
    return KernelFamily::attention;
  if (has_any(n, "batchnorm", "bn_fw", "bn_bw")) return KernelFamily::norm;
  if (has_any(n, "conv2d", "conv3d", "convolve", "fprop", "dgrad", "wgrad", "im2col", "col2im", "nchwtonhwc",
              "nhwctonchw", "winograd", "scudnn_", "hcudnn_", "84cudnn_", "88cudnn_", "gtcx", "depthwise"))
    return KernelFamily::convolution;
  if (has_any(n, "_fft", "fft_", "cufft", "fft<")) return KernelFamily::fft;
  if (has_any(n, "gemm", "gemv", "nvjet", "splitkreduce", "cublas", "marlin", "matmul", "triton_tem_", "dot_kernel",
              "fused_moe", "cijk_", "wvsplitk") ||
      n.starts_with("bmm_"))
    return KernelFamily::matmul;
  if (has_any(n, "layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm", "group_norm", "gammabeta",
              "rowwisemoments", "computeinternalgradients", "computebackwardfusedparams"))
    return KernelFamily::norm;
  if (has_any(n, "softmax")) return KernelFamily::softmax;
  if (has_any(n, "catarray", "memcpy", "direct_copy", "copy_kernel", "transpose", "reshape_and_cache", "store_kvcache",
              "permute"))
    return KernelFamily::copy;
  if (has_any(n, "index", "gather", "scatter", "embedding", "sort", "topk", "routing")) return KernelFamily::index;
  if (has_any(n, "reduce", "scan", "cumsum", "_pool_", "pooling")) return KernelFamily::reduction;
  if (has_any(n, "elementwise", "fill", "dropout", "arange", "act_and_mul", "rotary", "quant", "tensorop",
              "scalepackedtensor"))
    return KernelFamily::elementwise;
  return KernelFamily::other;
}

VLMEST_INLINE bool misaligned(std::string_view n) {
  using words::has_any;
  if (!has_any(n, "bf16", "f16", "h16816", "half", "hgemm", "bfloat16")) return false;
  for (const std::string_view word : {"align1", "align2", "align4", "ldg1", "ldg2", "ldg4"})
    for (auto at = n.find(word); at != n.npos; at = n.find(word, at + 1)) {
      const auto end = at + word.size();
      if (end == n.size() || std::isdigit(static_cast<unsigned char>(n[end])) == 0) return true;
    }
  return false;
}

}  // namespace kernel_names

VLMEST_INLINE KernelTraits kernel_traits(std::string_view kernel) {
  using words::has_any;
  const std::string n = kernel_names::lower(kernel);
  KernelTraits t{.family = kernel_names::family(n)};
  const bool product = t.family == KernelFamily::matmul, attention = t.family == KernelFamily::attention;
  // vLLM's unified_attention splits the keys (3d) of one query only; its wvSplitK multiplies by at most four rows.
  t.decode =
      (product && has_any(n, "gemv", "dot_kernel", "wvsplitk")) ||
      (attention && has_any(n, "splitkv", "paged_attention", "decode", "mmha", "single_query", "unified_attention_3d"));
  t.misaligned = product && kernel_names::misaligned(n);
  t.backward = has_any(n, "bwd", "backward", "bprop", "dgrad", "wgrad");
  t.tf32 = has_any(n, "tf32", "s1688gemm");
  return t;
}

}  // namespace vlmest::diagnose
