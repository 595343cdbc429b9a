// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include <kernels/attention/attention.hpp>

namespace vlmest::kernels::attention {
namespace {

std::string where(std::string_view variant) { return "attention/" + std::string(variant); }

}  // namespace

void require(const Attention& op, std::string_view variant) {
  const auto fail = [&](const std::string& what, const std::string& hint) { throw Error(where(variant), what, hint); };
  for (const std::int64_t n : {op.batch, op.heads, op.kv_heads, op.q_len, op.kv_len, op.head_dim, op.v_dim})
    if (n < 1 || n > INT32_MAX) fail("a size of " + std::to_string(n), "sizes go from 1 to 2147483647");
  if (checked_mul(op.batch, op.heads) > INT32_MAX || op.kv_len > INT32_MAX - 1024 || op.q_len > INT32_MAX - 1024)
    fail("more heads or tokens than 32-bit indices count", "take a smaller batch or shorter sequences");
  if (op.heads % op.kv_heads != 0)
    fail(std::to_string(op.heads) + " heads over " + std::to_string(op.kv_heads) + " key and value heads",
         "heads must be a multiple of kv_heads");
  if (op.dtype != DType::bf16 && op.dtype != DType::fp16)
    fail("no kernel for " + std::string(name(op.dtype)), "use bf16 or fp16");
  if (op.kv_dtype.value_or(op.dtype) != op.dtype)
    fail("keys and values of another type than the queries", "leave kv_dtype out");
  if (op.mask > Bytes{}) fail("an explicit mask", "use causal, or no mask");
}

void require_fused(const Attention& op, std::string_view variant, int columns) {
  require(op, variant);
  if (columns == 0)
    throw Error(where(variant), "no kernel for head size " + std::to_string(op.head_dim),
                "head sizes are 64, 72, 80, 128 and 256; naive takes any");
  if (op.v_dim != op.head_dim)
    throw Error(
        where(variant),
        "values of " + std::to_string(op.v_dim) + " columns beside a head size of " + std::to_string(op.head_dim),
        "v_dim must equal head_dim; naive takes any");
}

float scale_log2(const Attention& op) {
  return static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(op.head_dim)));
}

}  // namespace vlmest::kernels::attention
