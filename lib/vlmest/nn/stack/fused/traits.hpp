// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/torch_scripts.hpp>
#include <vlmest/nn/stack/traits.hpp>

namespace vlmest::stacks::fused {

inline constexpr StackTraits traits{
    .makes_masks = false,
    .attends_by_flash = true,
    .flash_attention_2 = false,
    .written_out_multihead_attention = false,
    .scales_queries = false,
    .gathers_angles = false,
    .fuses_gate = true,
    .fuses_scaled_sums = true,
    .fuses_loss = true,
    .attends_to_stored_cache = true,
    .keeps_recent_wide = false,
    .writes_out_linear_attention = false,
    .runs_every_expert = false,
    .adds_position_biases = false,
    .attends_to_wide_shared_heads = false,
    .transformers_quantizers = false,
    .divides_layers = false,
    .scripts = torch_scripts,
    .rank_scripts = torch_rank_scripts,
};

}  // namespace vlmest::stacks::fused
