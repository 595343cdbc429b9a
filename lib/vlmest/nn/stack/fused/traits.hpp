// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/traits.hpp>
#include <vlmest/nn/stack/transformers/run_scripts.hpp>

namespace vlmest::stacks::fused {

inline constexpr StackTraits traits{
    .makes_masks = false,
    .attends_by_flash = true,
    .flash_attention_2 = false,
    .pads_values = true,
    .written_out_multihead_attention = false,
    .scales_queries = false,
    .gathers_angles = false,
    .fuses_gate = true,
    .fuses_scaled_sums = true,
    .fuses_loss = true,
    .attends_to_stored_cache = true,
    .keeps_recent_wide = false,
    .writes_out_linear_attention = false,
    .adds_position_biases = false,
    .attends_to_wide_shared_heads = false,
    .transformers_quantizers = false,
    .divides_layers = false,
    .inference = torch_inference,
    .training = torch_training,
    .training_loop = torch_training_loop,
    .rank_inference = stacks::rank_inference,
    .rank_training = stacks::rank_training,
    .rank_training_loop = stacks::rank_training_loop,
};

}  // namespace vlmest::stacks::fused
