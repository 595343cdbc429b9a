// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/decode_launch.cuh>

namespace vlmest::kernels::attention {

int decode_blocks_bf16(const Attention& op) { return decode_blocks<cuda::bf16>(op); }

void launch_decode_bf16(const Attention& op, DecodeSplits plan, const AttentionOperands& operands,
                        cudaStream_t stream) {
  launch_decode<cuda::bf16>(op, plan, operands, stream);
}

}  // namespace vlmest::kernels::attention
