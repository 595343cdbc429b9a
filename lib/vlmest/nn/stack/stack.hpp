// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/traits.hpp>
#include <vlmest/nn/stack/words.hpp>
#include <vlmest/unit/required.hpp>

namespace vlmest {

/// A runtime as a value: a row of nn/stack/registry.hpp. What it leaves out does not compile.
struct Stack {
  Required<const char*> name;     ///< the word for it, as users choose it
  Required<const char*> kernels;  ///< whose kernels run, for lists of choices
  Required<StackTraits> traits;
  Required<const StackWords& (*)()> words;  ///< what they do is no part of what reads the name or the traits
};

}  // namespace vlmest
