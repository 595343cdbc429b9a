// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/flash_launch.cuh>

namespace vlmest::kernels::attention {

void launch_flash_bf16(const Attention& op, bool ping_pong, const AttentionOperands& operands, cudaStream_t stream) {
  launch_flash<cuda::bf16>(op, ping_pong, operands, stream);
}

}  // namespace vlmest::kernels::attention
