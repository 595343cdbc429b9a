// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/transformers/attention.hpp>
#include <vlmest/nn/stack/transformers/experts.hpp>
#include <vlmest/nn/stack/transformers/kernels.hpp>
#include <vlmest/nn/stack/transformers/mlp.hpp>
#include <vlmest/nn/stack/transformers/stack.hpp>
#include <vlmest/nn/stack/words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::stacks::transformers {

VLMEST_INLINE const StackWords& words() {
  static constexpr StackWords all{
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
  };
  return all;
}

}  // namespace vlmest::stacks::transformers
