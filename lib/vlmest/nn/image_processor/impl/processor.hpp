// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/rule_table.hpp>

namespace vlmest {

template <ImageRule R>
const RuleFunctions& rule_functions() {
  return rule_table<R>;
}

}  // namespace vlmest
