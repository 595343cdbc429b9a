// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/flash_mma_kernel.cuh>

namespace vlmest::kernels::attention {

void launch_flash_mma_bf16(const Attention& op, const AttentionOperands& operands, cudaStream_t stream) {
  launch_flash_mma<cuda::bf16>(op, operands, stream);
}

}  // namespace vlmest::kernels::attention
