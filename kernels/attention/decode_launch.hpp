// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>
#include <kernels/attention/decode_splits.hpp>

/// The instantiations of the decode kernels, one file for each element type.
namespace vlmest::kernels::attention {

/// Rows of queries that one block takes: heads that share a key head, times q_len.
constexpr std::int64_t decode_rows = 16;
constexpr std::int64_t decode_row_tiles(const Attention& op) {
  return (op.heads / op.kv_heads * op.q_len + decode_rows - 1) / decode_rows;
}

/// Blocks that one multiprocessor of the current device runs at a time.
int decode_blocks_bf16(const Attention& op);
int decode_blocks_fp16(const Attention& op);

void launch_decode_bf16(const Attention& op, DecodeSplits plan, const AttentionOperands& operands, cudaStream_t stream);
void launch_decode_fp16(const Attention& op, DecodeSplits plan, const AttentionOperands& operands, cudaStream_t stream);

}  // namespace vlmest::kernels::attention
