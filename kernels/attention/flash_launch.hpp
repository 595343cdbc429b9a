// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>

/// The instantiations of the flash kernels, one file for each element type, so that they compile side by side.
namespace vlmest::kernels::attention {

void launch_flash_bf16(const Attention& op, bool ping_pong, const AttentionOperands& operands, cudaStream_t stream);
void launch_flash_fp16(const Attention& op, bool ping_pong, const AttentionOperands& operands, cudaStream_t stream);

void launch_flash_mma_bf16(const Attention& op, const AttentionOperands& operands, cudaStream_t stream);
void launch_flash_mma_fp16(const Attention& op, const AttentionOperands& operands, cudaStream_t stream);

}  // namespace vlmest::kernels::attention
