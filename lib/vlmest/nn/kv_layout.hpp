// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/plan/plan.hpp>
#include <vlmest/tensor/dtype.hpp>

/// What keys and values take in memory, by layout and storage type.
namespace vlmest {

/// Group quantisation: one scale and one zero point, each in the activations' type, for 64 values (the defaults of
/// transformers 5.17 cache_utils.py, QuantizedCache, with its HQQ backend, which alone takes 8 and 4 bits).
inline constexpr std::int64_t kv_group = 64;
/// The newest tokens stay as they are until so many have come together (the same, residual_length).
inline constexpr std::int64_t kv_residual = 128;

constexpr bool is_grouped(DType t) { return t == DType::int8 || t == DType::int4; }

/// Throws Error for a type that no cache is kept in.
constexpr void check_kv_type(DType t) {
  if (is_grouped(t) || t == DType::fp8 || is_half(t) || t == DType::fp32) return;
  throw Error("kv", "no cache is kept in " + std::string(name(t)), "use bf16, fp16, fp32, fp8, int8 or int4");
}

/// Scales of one tensor of n values: groups have a scale and a zero point; fp8 has one fp32 scale for the whole tensor,
/// as inference servers calibrate it; plain types have none.
constexpr Bytes scale_bytes(DType stored, DType activations, Elements n) {
  if (stored == DType::fp8) return Bytes(4);
  if (!is_grouped(stored)) return Bytes{};
  return size_of(Elements(checked_add(n.value(), kv_group - 1) / kv_group * 2), activations);
}

/// What one decoder layer caches for all sequences of a batch.
struct KvRows {
  std::int64_t batch = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;  ///< of keys and of values
  std::int64_t tokens = 0;    ///< of one sequence
};

/// Tokens for which a sequence holds memory between steps: whole pages, or the window less the token that comes next.
constexpr std::int64_t held_tokens(const KvLayout& l, std::int64_t tokens) {
  switch (l.kind) {
    case KvLayout::Kind::paged: {
      if (l.block < 1) throw Error("kv.block_size", "a page holds at least one token");
      return checked_mul(checked_add(tokens, l.block - 1) / l.block, l.block);
    }
    case KvLayout::Kind::sliding:
      if (l.window < 2) throw Error("kv.window", "a window holds at least two tokens");
      return std::min(tokens, l.window - 1);
    case KvLayout::Kind::dense:
    case KvLayout::Kind::mla: break;
  }
  return tokens;
}

/// Bytes of one layer's entry. `recent` of its tokens (the newest) are not quantised yet. Multi-head latent attention
/// keeps latent_dim + rope_dim values of a token for all heads (DeepSeek-AI, DeepSeek-V2, 2024, section 2.1),
/// everything else keys and values of each head.
constexpr Bytes kv_bytes(const KvLayout& l, const KvRows& r, DType activations, std::int64_t recent = 0) {
  const DType stored = l.dtype.value_or(activations);
  check_kv_type(stored);
  const std::int64_t held = held_tokens(l, r.tokens);
  const std::int64_t fresh = is_grouped(stored) ? std::min(recent, held) : 0;
  if (l.kind == KvLayout::Kind::mla) {
    const std::int64_t width = checked_add(l.latent_dim, l.rope_dim);
    if (l.latent_dim < 1 || l.rope_dim < 0) throw Error("kv.latent_dim", "missing", "give latent_dim and rope_dim");
    const Elements old(checked_mul(checked_mul(r.batch, held - fresh), width));
    return size_of(old, stored) + scale_bytes(stored, activations, old) +
           size_of(Elements(checked_mul(checked_mul(r.batch, fresh), width)), activations);
  }
  const std::int64_t row = checked_mul(checked_mul(r.batch, r.kv_heads), r.head_dim);
  const Elements old(checked_mul(row, held - fresh));
  const Bytes one = size_of(old, stored) + scale_bytes(stored, activations, old) +
                    size_of(Elements(checked_mul(row, fresh)), activations);
  return one * 2;
}

/// The layout of a run: the description's, where the caller does not ask for another one.
constexpr KvLayout chosen_layout(const std::optional<KvLayout>& described, const KvLayout& asked) {
  if (!described) return asked;
  KvLayout r = asked.kind == KvLayout::Kind::dense ? *described : asked;
  if (asked.dtype) r.dtype = asked.dtype;
  return r;
}

}  // namespace vlmest
