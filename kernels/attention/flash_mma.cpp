// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/flash_launch.hpp>
#include <kernels/attention/flash_mma.hpp>
#include <kernels/attention/swizzle.hpp>
#include <kernels/cuda/device.hpp>

namespace vlmest::kernels {

using namespace attention;

FlashMmaAttention::FlashMmaAttention(const Attention& op) : op_(op) {
  require_fused(op, name(), padded_head_dim(op.head_dim));
  if (cuda::sm() < 80)
    throw Error("attention/flash_mma", "the kernel needs compute capability 8.0 or above", "use naive");
}

int FlashMmaAttention::padded_head_dim(std::int64_t head_dim) { return padded_columns(head_dim); }

void FlashMmaAttention::operator()(const AttentionOperands& operands, cudaStream_t stream) const {
  const auto launch = op_.dtype == DType::bf16 ? launch_flash_mma_bf16 : launch_flash_mma_fp16;
  launch(op_, operands, stream);
}

}  // namespace vlmest::kernels
