// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/fused/traits.hpp>
#include <vlmest/nn/stack/stack.hpp>
#include <vlmest/nn/stack/words.hpp>

namespace vlmest::stacks::fused {

/// What its words do.
const StackWords& words();

/// An idealised stack: one kernel wherever real stacks fuse (graph/eager/fused.hpp), weights and caches as stored.
inline constexpr Stack stack{
    .name = "fused",
    .kernels = "an idealised stack",
    .traits = traits,
    .words = words,
};

}  // namespace vlmest::stacks::fused

#ifndef VLMEST_COMPILED
#include <vlmest/nn/stack/fused/impl/stack.hpp>
#endif
