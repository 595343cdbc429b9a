// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/flash.hpp>
#include <kernels/attention/flash_launch.hpp>
#include <kernels/attention/flash_shape.hpp>
#include <kernels/cuda/device.hpp>

namespace vlmest::kernels {

using namespace attention;

FlashAttention::FlashAttention(const Attention& op, Options options) : op_(op), options_(options) {
  require_fused(op, name(), padded_head_dim(op.head_dim));
  if (cuda::sm() != 90)
    throw Error("attention/flash",
                "the kernel is for compute capability 9.0, this device has " + std::to_string(cuda::sm() / 10) + "." +
                    std::to_string(cuda::sm() % 10),
                "use flash_mma");
}

int FlashAttention::padded_head_dim(std::int64_t head_dim) { return padded_columns(head_dim); }
int FlashAttention::query_rows(std::int64_t head_dim) {
  return with_flash_shape(head_dim, [](auto shape) { return decltype(shape)::query_rows; });
}
int FlashAttention::key_rows(std::int64_t head_dim) {
  return with_flash_shape(head_dim, [](auto shape) { return decltype(shape)::keys; });
}

void FlashAttention::operator()(const AttentionOperands& operands, cudaStream_t stream) const {
  const auto launch = op_.dtype == DType::bf16 ? launch_flash_bf16 : launch_flash_fp16;
  launch(op_, options_.ping_pong, operands, stream);
}

}  // namespace vlmest::kernels
