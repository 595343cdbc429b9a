// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family_table.hpp>

namespace vlmest {

template <class F>
const FamilyFunctions& family_functions() {
  return family_table<F>;
}

}  // namespace vlmest
