// SPDX-License-Identifier: Apache-2.0
// rejected with: Required<
#include <vlmest/nn/stack/transformers/stack.hpp>

using namespace vlmest;
using namespace vlmest::stacks::transformers;

constexpr StackWords words{
    .norm = norm,
    .rotate = rotate,
    .join_channels = join_channels,
    .quick_gelu = quick_gelu,
    .gelu_new = gelu_new,
    .add_scaled = add_scaled,
#ifndef REJECT
    .tanh_gate = tanh_gate,
#endif
    .gated_mlp = gated_mlp,
    .attend = attend,
    .attend_with_sinks = attend_with_sinks,
    .route = route,
    .experts = experts,
};
