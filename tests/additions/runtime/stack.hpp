// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/stack/fused/mlp.hpp>
#include <vlmest/nn/stack/stack.hpp>
#include <vlmest/nn/stack/torch_scripts.hpp>
#include <vlmest/nn/stack/transformers/attention.hpp>
#include <vlmest/nn/stack/transformers/experts.hpp>
#include <vlmest/nn/stack/transformers/kernels.hpp>

namespace vlmest::stacks::toy {

/// Its own kernel, which copies.
inline Value norm(Context&, Norm::Kind, Value& x, Value&, CallRef<Value>) { return eager::unary("toy_norm", x); }

inline const StackWords& words() {
  static constexpr StackWords all{
      .norm = norm,
      .rotate = transformers::rotate,
      .join_channels = transformers::join_channels,
      .quick_gelu = transformers::quick_gelu,
      .gelu_new = transformers::gelu_new,
      .add_scaled = transformers::add_scaled,
      .tanh_gate = transformers::tanh_gate,
      .gated_mlp = fused::gated_mlp,
      .attend = transformers::attend,
      .attend_with_sinks = transformers::attend_with_sinks,
      .route = transformers::route,
      .experts = transformers::experts,
  };
  return all;
}

/// transformers with two kernels: norms are its own, gated MLPs those of the idealised stack.
inline constexpr Stack stack{
    .name = "toy",
    .kernels = "a toy's",
    .traits =
        StackTraits{
            .makes_masks = true,
            .attends_by_flash = false,
            .flash_attention_2 = false,
            .written_out_multihead_attention = true,
            .scales_queries = true,
            .gathers_angles = true,
            .fuses_gate = true,
            .fuses_scaled_sums = false,
            .fuses_loss = false,
            .attends_to_stored_cache = false,
            .keeps_recent_wide = true,
            .writes_out_linear_attention = true,
            .runs_every_expert = true,
            .adds_position_biases = true,
            .attends_to_wide_shared_heads = true,
            .transformers_quantizers = true,
            .divides_layers = false,
            .scripts = torch_scripts,
            .rank_scripts = torch_rank_scripts,
        },
    .words = words,
};

}  // namespace vlmest::stacks::toy
