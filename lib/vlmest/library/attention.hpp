// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include <vlmest/library/rules.hpp>
#include <vlmest/op/attention.hpp>

/// Which backend torch chooses for scaled_dot_product_attention, and what each takes from the allocator
/// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
namespace vlmest {

/// A call of scaled_dot_product_attention as the choice sees it.
struct SdpaCall {
  Attention op;                ///< sizes, type, causal
  Gpu gpu;                     ///< that runs it
  bool masked = false;         ///< an attention mask is given
  bool gaps = false;           ///< the elements of a query's, key's or value's row do not lie one after another
  bool mask_gaps = false;      ///< nor those of the mask's
  bool mask_trains = false;    ///< its gradient is wanted
  bool mask_of_three = false;  ///< it has three dimensions, which cuDNN does not take (recorded)
  bool enable_gqa = false;     ///< key and value heads may be fewer than query heads
  bool drops = false;          ///< dropout_p is above zero, which cuDNN does not take of a single query
};

constexpr bool cudnn_allows(const SdpaCall& c) {
  const Attention& o = c.op;
  const std::int64_t limit = holds(ArchitectureRule::cudnn_attention_narrow, c.gpu) ? 128 : 256;
  const bool heads = c.enable_gqa ? o.heads % o.kv_heads == 0 : o.heads == o.kv_heads;
  return is_half(o.dtype) && holds(ArchitectureRule::cudnn_attention, c.gpu) && heads && o.head_dim % 8 == 0 &&
         o.v_dim % 8 == 0 && o.head_dim <= limit && o.v_dim <= limit && o.kv_len != 1 && !c.mask_gaps &&
         !c.mask_trains && !c.mask_of_three && !(c.drops && o.q_len == 1);
}
constexpr bool flash_allows(const SdpaCall& c) {
  const Attention& o = c.op;
  const bool heads = c.enable_gqa ? o.heads % o.kv_heads == 0 : o.heads == o.kv_heads;
  return !c.masked && o.head_dim == o.v_dim && o.head_dim <= 256 && holds(ArchitectureRule::flash_attention, c.gpu) &&
         is_half(o.dtype) && heads && (!o.causal || o.q_len == o.kv_len);
}
constexpr bool efficient_allows(const SdpaCall& c) {
  const Attention& o = c.op;
  const bool newer = holds(ArchitectureRule::efficient_attention_bf16, c.gpu);
  const bool type = o.dtype == DType::fp32 || o.dtype == DType::fp16 || (o.dtype == DType::bf16 && newer);
  const std::int64_t align = is_half(o.dtype) ? 8 : newer ? 4 : 1;
  return type && holds(ArchitectureRule::efficient_attention, c.gpu) && o.head_dim % align == 0 &&
         o.v_dim % align == 0 && o.heads == o.kv_heads && !c.mask_gaps;
}

/// priority_order with check_prefer_cudnn_attention: cuDNN leads, or is never reached, because math, which takes
/// everything, stands before it.
constexpr AttentionBackend choose_backend(const SdpaCall& c) {
  if (c.gaps) return AttentionBackend::math;  // check_last_dim_stride_equals_1_dense of every fused kernel
  if (holds(ArchitectureRule::cudnn_attention_first, c.gpu) && cudnn_allows(c)) return AttentionBackend::cudnn;
  if (flash_allows(c)) return AttentionBackend::flash;
  if (efficient_allows(c)) return AttentionBackend::efficient;
  return AttentionBackend::math;
}

/// Scratch of cuDNN's forward: 256 B, or for a single query over more than 512 keys the partial results of a split over
/// them. The number of splits is a power of two, at most one per 128 keys and so many that all blocks fit two on each
/// multiprocessor; fewer than four are not worth it and take no scratch (cuDNN 9.19 on sm_90; agrees with 1,044
/// recorded shapes of batch 1 to 32 and 64 to 9,000 keys).
constexpr Bytes cudnn_workspace(const Attention& o, const Gpu& gpu) {
  if (o.q_len != 1) return Bytes(256);
  const auto power_below = [](std::int64_t n) {
    return n < 1 ? std::int64_t{1} : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  };
  const std::int64_t by_keys = o.kv_len > 512 ? power_below(o.kv_len / 128) : 1;
  const std::int64_t by_blocks = power_below(std::int64_t{2} * gpu.multiprocessors / checked_mul(o.batch, o.kv_heads));
  const std::int64_t splits = by_keys < by_blocks ? by_keys : by_blocks;
  if (splits < 4) return Bytes{};
  const auto aligned = [](std::int64_t bytes) { return (bytes + 127) / 128 * 128; };
  const std::int64_t rows = checked_mul(splits, checked_mul(o.batch, o.heads));
  return Bytes(
      checked_add(128 + 2 * aligned(checked_mul(rows, 4)), aligned(checked_mul(rows, checked_mul(o.v_dim, 4)))));
}

/// Channels of a head inside FlashAttention's kernels (flash_api.cpp, head_size_rounded).
constexpr std::int64_t flash_head_size(std::int64_t d) {
  const std::int64_t step = d <= 128 ? 32 : 64;
  return (d + step - 1) / step * step;
}

/// Rows of a flash split over the keys (flash_api.cpp, num_splits_heuristic on twice the multiprocessors).
constexpr std::int64_t flash_splits(const Attention& o, const Gpu& gpu) {
  const std::int64_t d = (o.head_dim + 7) / 8 * 8;
  const std::int64_t block = d <= 64 ? 256 : d <= 128 ? 128 : 64;
  const bool swapped = o.q_len == 1 && o.heads > o.kv_heads && o.head_dim % 8 == 0;
  const std::int64_t rows = swapped ? o.heads / o.kv_heads : o.q_len;
  const std::int64_t heads = swapped ? o.kv_heads : o.heads;
  const std::int64_t n_blocks = (o.kv_len + block - 1) / block;
  const std::int64_t work = o.batch * heads * ((rows + 63) / 64);
  const std::int64_t sms = std::int64_t{2} * gpu.multiprocessors;
  if (static_cast<double>(work) >= 0.8 * static_cast<double>(sms)) return 1;
  const std::int64_t limit = n_blocks < 128 ? (n_blocks < sms ? n_blocks : sms) : (128 < sms ? 128 : sms);
  auto eligible = [&](std::int64_t s) { return s == 1 || (n_blocks + s - 1) / s != (n_blocks + s - 2) / (s - 1); };
  auto efficiency = [&](std::int64_t s) {
    const double waves = static_cast<double>(work * s) / static_cast<double>(sms);
    const auto whole = static_cast<double>((work * s + sms - 1) / sms);
    return waves / whole;
  };
  double best = 0;
  for (std::int64_t s = 1; s <= limit; ++s)
    if (eligible(s) && efficiency(s) > best) best = efficiency(s);
  for (std::int64_t s = 1; s <= limit; ++s)
    if (eligible(s) && efficiency(s) >= 0.85 * best) return s;
  return 1;
}

}  // namespace vlmest
