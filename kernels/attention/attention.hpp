// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/op/attention.hpp>

/// Attention forward: out[batch, heads, q_len, v_dim] = softmax(q k^T / sqrt(head_dim)) v, all contiguous, the layout
/// of vlmest::Attention. Query head h reads key and value head h / (heads / kv_heads). With `causal`, query i sees the
/// keys up to i + kv_len - q_len; a query that sees no key gives zeros.
///
/// Every variant is a prepared call: made once for an op (where sizes that it cannot do throw Error), then called with
/// device addresses, any number of times, also while a CUDA graph is recorded.
namespace vlmest::kernels {

/// Device addresses, aligned to 16 bytes. `workspace` holds what the call's workspace() says, given by the caller and
/// used by one call at a time; null where that is zero.
struct AttentionOperands {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  void* workspace = nullptr;
};

namespace attention {

/// Throws Error where a size is not positive or leaves the range of a kernel's 32-bit indices, heads are no multiple of
/// kv_heads, or elements are not all bf16 or all fp16. `variant` names the kernel in the message.
void require(const Attention& op, std::string_view variant);

/// As require; further throws where an explicit mask or a v_dim other than head_dim is asked for, or `columns`, how
/// many columns the variant works on for op.head_dim, is 0 because it has no kernel for it.
void require_fused(const Attention& op, std::string_view variant, int columns);

/// The factor of the scores, 1 / sqrt(head_dim), times log2(e): kernels raise 2, not e, to the scores.
float scale_log2(const Attention& op);

}  // namespace attention
}  // namespace vlmest::kernels
