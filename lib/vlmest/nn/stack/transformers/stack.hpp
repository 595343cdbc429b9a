// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/stack.hpp>
#include <vlmest/nn/stack/transformers/traits.hpp>
#include <vlmest/nn/stack/words.hpp>

namespace vlmest::stacks::transformers {

/// What its words do.
const StackWords& words();

/// The modules of Hugging Face transformers 5.17 on torch 2.11 as they run eagerly: those that the blocks write out.
inline constexpr Stack stack{
    .name = "transformers",
    .kernels = "Hugging Face's",
    .traits = traits,
    .words = words,
};

}  // namespace vlmest::stacks::transformers

#ifndef VLMEST_COMPILED
#include <vlmest/nn/stack/transformers/impl/stack.hpp>
#endif
