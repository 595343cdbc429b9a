// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/torch_scripts.hpp>
#include <vlmest/nn/stack/traits.hpp>

namespace vlmest::stacks::transformers {

inline constexpr StackTraits traits{
    .makes_masks = true,
    .attends_by_flash = false,
    .flash_attention_2 = true,
    .written_out_multihead_attention = true,
    .scales_queries = true,
    .gathers_angles = true,
    .fuses_gate = false,
    .fuses_scaled_sums = false,
    .fuses_loss = false,
    .attends_to_stored_cache = false,
    .keeps_recent_wide = true,
    .writes_out_linear_attention = true,
    .runs_every_expert = true,
    .adds_position_biases = true,
    .attends_to_wide_shared_heads = true,
    .transformers_quantizers = true,
    .divides_layers = true,
    .scripts = torch_scripts,
    .rank_scripts = torch_rank_scripts,
};

}  // namespace vlmest::stacks::transformers
