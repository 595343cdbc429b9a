// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include <vlmest/op/cost.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// Which implementation of torch.nn.functional.scaled_dot_product_attention runs.
enum class AttentionBackend : std::uint8_t { cudnn, flash, efficient, math };
template <>
inline constexpr std::array<std::string_view, 4> words_of<AttentionBackend>{"cudnn", "flash", "efficient", "math"};

/// Fused attention: q[batch, heads, q_len, head_dim], k[batch, kv_heads, kv_len, head_dim],
/// v[batch, kv_heads, kv_len, v_dim]; `heads` is a multiple of `kv_heads`.
struct Attention {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 64;
  std::int64_t v_dim = 64;
  bool causal = false;
  Bytes mask{};  ///< bytes of an explicit mask that the kernel reads
  DType dtype = DType::bf16;
  AttentionBackend backend = AttentionBackend::cudnn;
  std::optional<DType> kv_dtype{};  ///< keys and values that the kernel dequantises as it reads them
  int kernels = 1;
};

/// The (query, key) pairs that a causal mask leaves visible; queries are the last q_len positions of kv_len.
constexpr std::int64_t visible_pairs(std::int64_t q_len, std::int64_t kv_len, bool causal) {
  if (!causal) return checked_mul(q_len, kv_len);
  const std::int64_t full = kv_len > q_len ? kv_len - q_len : 0;
  const std::int64_t q = q_len < kv_len ? q_len : kv_len;
  return checked_add(checked_mul(q_len, full), checked_add(checked_mul(q, q), q) / 2);
}

/// Dense FLOPs: torch/utils/flop_counter.py, sdpa_flop_count: two products of q_len x kv_len per head.
constexpr Cost cost(const Attention& o) {
  const std::int64_t bh = checked_mul(o.batch, o.heads);
  const std::int64_t dims = checked_add(o.head_dim, o.v_dim);
  Cost r;
  r.flops = flops(Macs(checked_mul(checked_mul(bh, checked_mul(o.q_len, o.kv_len)), dims)));
  r.flops_causal = flops(Macs(checked_mul(checked_mul(bh, visible_pairs(o.q_len, o.kv_len, o.causal)), dims)));
  const std::int64_t bkv = checked_mul(o.batch, o.kv_heads);
  r.read = size_of(Elements(checked_mul(checked_mul(bh, o.q_len), o.head_dim)), o.dtype) +
           size_of(Elements(checked_mul(checked_mul(bkv, o.kv_len), dims)), o.kv_dtype.value_or(o.dtype)) + o.mask;
  r.written = size_of(Elements(checked_mul(checked_mul(bh, o.q_len), o.v_dim)), o.dtype);
  r.engine = o.dtype == DType::fp32 ? Engine::cuda_core : Engine::tensor_core;
  r.dtype = o.dtype;
  r.kernels = o.kernels;
  return r;
}

/// The backward of a fused attention: five products where the forward has two (FlashAttention-2, arXiv 2307.08691,
/// section 3.1.2; torch/utils/flop_counter.py, sdpa_backward_flop_count).
struct AttentionBackward {
  Attention forward;
};

constexpr Cost cost(const AttentionBackward& o) {
  const Attention& f = o.forward;
  Cost r = cost(f);
  const std::int64_t bh = checked_mul(f.batch, f.heads);
  const auto products = [&](std::int64_t pairs) {
    const std::int64_t each = checked_mul(bh, pairs);
    return flops(Macs(checked_add(checked_mul(each, 3 * f.head_dim), checked_mul(each, 2 * f.v_dim))));
  };
  r.flops = products(checked_mul(f.q_len, f.kv_len));
  r.flops_causal = products(visible_pairs(f.q_len, f.kv_len, f.causal));
  r.written = r.read;
  r.read += r.written;
  const bool sums_groups = f.backend == AttentionBackend::flash && f.heads != f.kv_heads;
  r.kernels = f.kernels == 0 ? 0 : sums_groups ? 5 : 3;
  return r;
}

}  // namespace vlmest
