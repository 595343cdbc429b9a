// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/decode.hpp>
#include <kernels/attention/decode_launch.hpp>
#include <kernels/attention/swizzle.hpp>
#include <kernels/cuda/device.hpp>

namespace vlmest::kernels {

using namespace attention;

DecodeAttention::DecodeAttention(const Attention& op, std::int64_t splits) : op_(op) {
  require_fused(op, name(), padded_columns(op.head_dim));
  if (cuda::sm() < 80)
    throw Error("attention/split_kv", "the kernel needs compute capability 8.0 or above", "use naive");
  if (splits < 0 || splits > most_decode_splits)
    throw Error("attention/split_kv", std::to_string(splits) + " splits",
                "give 1 to " + std::to_string(most_decode_splits) + ", or 0 to have them chosen");
  const std::int64_t units = checked_mul(checked_mul(op.batch, op.kv_heads), decode_row_tiles(op));
  if (splits > 0) {
    const std::int64_t turns = (op.kv_len + decode_keys_per_turn - 1) / decode_keys_per_turn;
    plan_.keys = (turns + splits - 1) / splits * decode_keys_per_turn;
    plan_.splits = (op.kv_len + plan_.keys - 1) / plan_.keys;
  } else {
    const int blocks = op.dtype == DType::bf16 ? decode_blocks_bf16(op) : decode_blocks_fp16(op);
    if (blocks < 1)
      throw Error("attention/split_kv", "a block needs more shared memory than this device has", "use flash_mma");
    plan_ = choose_decode_splits(units, op.kv_len, static_cast<std::int64_t>(blocks) * cuda::multiprocessors());
  }
  if (checked_mul(units, plan_.splits) > INT32_MAX)
    throw Error("attention/split_kv", "more blocks than a grid has", "take a smaller batch");
}

Bytes DecodeAttention::workspace() const {
  if (plan_.splits == 1) return {};
  const std::int64_t rows = checked_mul(checked_mul(op_.batch, op_.heads), op_.q_len);
  // Outputs, and the maximum and the sum of each row.
  return Bytes(checked_mul(checked_mul(rows, plan_.splits), (padded_columns(op_.head_dim) + 2) * 4));
}

void DecodeAttention::operator()(const AttentionOperands& operands, cudaStream_t stream) const {
  const auto launch = op_.dtype == DType::bf16 ? launch_decode_bf16 : launch_decode_fp16;
  launch(op_, plan_, operands, stream);
}

}  // namespace vlmest::kernels
