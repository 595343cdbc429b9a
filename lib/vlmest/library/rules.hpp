// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <vlmest/library/gpu.hpp>

/// What the libraries decide by the GPU's architecture, in one table, and the versions whose decisions these are.
namespace vlmest {

/// The libraries whose choices the graph follows.
enum class Library : std::uint8_t { torch, cublas, cudnn, cufft, transformers, flash_attn, bitsandbytes, gptqmodel };

struct LibraryVersion {
  Library library;
  std::string_view name, version;
};
inline constexpr std::array<LibraryVersion, 8> libraries{{{Library::torch, "PyTorch", "2.11"},
                                                          {Library::cublas, "cuBLAS", "13.1"},
                                                          {Library::cudnn, "cuDNN", "9.19"},
                                                          {Library::cufft, "cuFFT", "12.0"},
                                                          {Library::transformers, "transformers", "5.17"},
                                                          {Library::flash_attn, "flash-attn", "2"},
                                                          {Library::bitsandbytes, "bitsandbytes", "0.50.1"},
                                                          {Library::gptqmodel, "GPTQModel", "5"}}};
constexpr const LibraryVersion& followed(Library l) { return libraries[static_cast<std::size_t>(l)]; }

/// What a library does on some architectures alone.
enum class ArchitectureRule : std::uint8_t {
  cudnn_attention,
  cudnn_attention_first,
  cudnn_attention_narrow,
  flash_attention,
  efficient_attention,
  efficient_attention_bf16,
  grouped_product,
  large_cublas_workspace,
  convolution_scratch,
  flash_attn_2,
  row_wise_fp8,
  stored_fp8,
  stored_mxfp4,
  gemm_4bit_of_4_rows,
  gemm_4bit_by_waves,
  marlin,
};

/// Compute capabilities, 10 * major + minor, from the first up to the last, both included; none where not given.
struct Architectures {
  int first = 1000, last = 999;
};

struct ArchitectureRow {
  ArchitectureRule rule;
  Library library;
  std::string_view what;
  std::array<Architectures, 4> on;
  std::string_view source;
};

/// One row for each rule, in the order of the enum.
inline constexpr std::array<ArchitectureRow, 16> architecture_rules{{
    {ArchitectureRule::cudnn_attention,
     Library::torch,
     "cuDNN's attention can be taken",
     {{{80, 999}}},
     "aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, check_cudnn_hardware_support"},
    {ArchitectureRule::cudnn_attention_first,
     Library::torch,
     "cuDNN's attention is taken before any other; elsewhere it is never reached",
     {{{90, 90}, {93, 93}, {100, 100}, {103, 103}}},
     "sdp_utils.cpp, check_prefer_cudnn_attention and priority_order"},
    {ArchitectureRule::cudnn_attention_narrow,
     Library::torch,
     "cuDNN's attention takes heads of up to 128 channels, not 256",
     {{{100, 109}}},
     "sdp_utils.cpp, check_cudnn_tensor_shapes"},
    {ArchitectureRule::flash_attention,
     Library::torch,
     "FlashAttention-2 inside scaled_dot_product_attention",
     {{{80, 999}}},
     "sdp_utils.cpp, check_flash_attention_hardware_support"},
    {ArchitectureRule::efficient_attention,
     Library::torch,
     "memory-efficient attention",
     {{{50, 999}}},
     "sdp_utils.cpp, check_mem_efficient_hardware_support"},
    {ArchitectureRule::efficient_attention_bf16,
     Library::torch,
     "memory-efficient attention of bf16 too, and of fp32 heads in steps of four channels, not of one",
     {{{80, 999}}},
     "sdp_utils.cpp, can_use_mem_efficient_attention and minimum_gemm_alignment"},
    {ArchitectureRule::grouped_product,
     Library::torch,
     "grouped_mm of bf16 is one CUTLASS kernel; elsewhere a product for each group",
     {{{90, 90}, {100, 109}}},
     "aten/src/ATen/native/cuda/GroupMM.cu"},
    {ArchitectureRule::large_cublas_workspace,
     Library::torch,
     "a cuBLAS workspace of 32 MiB (:4096:8), not of 8.125 MiB (:4096:2:16:8)",
     {{{90, 99}}},
     "aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize"},
    {ArchitectureRule::convolution_scratch,
     Library::cudnn,
     "what a convolution takes from the allocator was recorded there",
     {{{90, 90}}},
     "library/convolution.hpp"},
    {ArchitectureRule::flash_attn_2,
     Library::flash_attn,
     "the package flash-attn",
     {{{80, 999}}},
     "its README, \"NVIDIA CUDA Support\"; csrc/flash_attn/flash_api.cpp"},
    {ArchitectureRule::row_wise_fp8,
     Library::transformers,
     "fp8 weights of compressed-tensors are multiplied as they are",
     {{{89, 999}}},
     "integrations/compressed_tensors.py, use_optimized_inference"},
    {ArchitectureRule::stored_fp8,
     Library::transformers,
     "fine-grained fp8 weights stay fp8; elsewhere they are made wide when they are loaded",
     {{{89, 999}}},
     "quantizers/quantizer_finegrained_fp8.py, validate_environment"},
    {ArchitectureRule::stored_mxfp4,
     Library::transformers,
     "mxfp4 weights stay mxfp4; likewise",
     {{{75, 999}}},
     "quantizers/quantizer_mxfp4.py, validate_environment"},
    {ArchitectureRule::gemm_4bit_of_4_rows,
     Library::bitsandbytes,
     "its own kernel multiplies up to 4 rows by a 4-bit weight, not 7",
     {{{100, 109}}},
     "backends/cuda/ops.py, _gemm_4bit_use_custom_cuda"},
    {ArchitectureRule::gemm_4bit_by_waves,
     Library::bitsandbytes,
     "its own kernel multiplies as many rows as the weight's tiles and the multiprocessors allow; elsewhere up to 7",
     {{{90, 99}}},
     "backends/cuda/ops.py, _gemm_4bit_use_custom_cuda"},
    {ArchitectureRule::marlin,
     Library::gptqmodel,
     "Marlin, which multiplies by 4- and 8-bit integer weights as they are",
     {{{80, 999}}},
     "gptqmodel_ext/marlin/gptq_marlin.cu"},
}};

constexpr const ArchitectureRow& row(ArchitectureRule r) { return architecture_rules[static_cast<std::size_t>(r)]; }

/// Whether a rule holds on a GPU of compute capability `sm`.
constexpr bool holds(ArchitectureRule r, int sm) {
  const auto& on = row(r).on;
  return std::any_of(on.begin(), on.end(), [sm](Architectures a) { return a.first <= sm && sm <= a.last; });
}
constexpr bool holds(ArchitectureRule r, const Gpu& gpu) { return holds(r, gpu.sm); }
/// The lowest compute capability on which it does.
constexpr int lowest(ArchitectureRule r) { return row(r).on.front().first; }

static_assert([] {
  for (std::size_t i = 0; i < architecture_rules.size(); ++i)
    if (architecture_rules[i].rule != static_cast<ArchitectureRule>(i)) return false;
  for (std::size_t i = 0; i < libraries.size(); ++i)
    if (libraries[i].library != static_cast<Library>(i)) return false;
  return true;
}());

}  // namespace vlmest
