// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/stack.hpp>
#include <vlmest/nn/stack/transformers/attention.hpp>
#include <vlmest/nn/stack/transformers/experts.hpp>
#include <vlmest/nn/stack/transformers/kernels.hpp>
#include <vlmest/nn/stack/transformers/mlp.hpp>
#include <vlmest/nn/stack/transformers/traits.hpp>

namespace vlmest::stacks::transformers {

/// The modules of Hugging Face transformers 5.17 on torch 2.11 as they run eagerly: those that the blocks write out.
inline constexpr Stack stack{
    .name = "transformers",
    .kernels = "Hugging Face's",
    .traits = traits,
    .words =
        StackWords{
            .norm = norm,
            .rotate = rotate,
            .join_channels = join_channels,
            .quick_gelu = quick_gelu,
            .gelu_new = gelu_new,
            .add_scaled = add_scaled,
            .tanh_gate = tanh_gate,
            .gated_mlp = gated_mlp,
            .attend = attend,
            .attend_with_sinks = attend_with_sinks,
            .route = route,
            .experts = experts,
        },
};

}  // namespace vlmest::stacks::transformers
