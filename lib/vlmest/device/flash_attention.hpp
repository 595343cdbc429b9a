// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/device/device.hpp>
#include <vlmest/nn/stack/stacks.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// flash-attn 2 has kernels for Ampere and later alone (its README, "NVIDIA CUDA Support";
/// csrc/flash_attn/flash_api.cpp refuses devices below compute capability 8.0).
constexpr bool has_flash_attention(const Device& d) { return d.sm >= 80; }

/// Throws Error for a plan with FlashAttention-2 on a device that has none. A stack may have kernels of its own.
inline void expect_runnable(const Plan& p, const Device& d) {
  if (p.attention != AttentionKind::flash || !traits_of(p.profile).flash_attention_2 || has_flash_attention(d)) return;
  throw Error("--attention",
              "FlashAttention-2 needs compute capability 8.0, and " + d.name + " has " + std::to_string(d.sm / 10) +
                  "." + std::to_string(d.sm % 10),
              "give --attention sdpa, which takes a memory-efficient kernel there, or eager");
}

}  // namespace vlmest
