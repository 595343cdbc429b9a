// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/device/device.hpp>
#include <vlmest/library/rules.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// Throws Error for a plan with FlashAttention-2 on a device that has none. A stack may have kernels of its own.
inline void expect_runnable(const Plan& p, const Device& d) {
  if (p.attention != AttentionKind::flash || !traits_of(p.runtime).flash_attention_2 ||
      holds(ArchitectureRule::flash_attn_2, d.sm))
    return;
  throw Error("plan.attention",
              "FlashAttention-2 needs compute capability 8.0, and " + d.name + " has " + std::to_string(d.sm / 10) +
                  "." + std::to_string(d.sm % 10),
              "give plan.attention=sdpa, which takes a memory-efficient kernel there, or eager");
}

}  // namespace vlmest
