// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/fused/attention.hpp>
#include <vlmest/nn/stack/fused/experts.hpp>
#include <vlmest/nn/stack/fused/kernels.hpp>
#include <vlmest/nn/stack/fused/mlp.hpp>
#include <vlmest/nn/stack/fused/traits.hpp>
#include <vlmest/nn/stack/stack.hpp>

namespace vlmest::stacks::fused {

/// An idealised stack: one kernel wherever real stacks fuse (graph/eager/fused.hpp), weights and caches as stored.
inline constexpr Stack stack{
    .name = "fused",
    .kernels = "an idealised stack",
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

}  // namespace vlmest::stacks::fused
