// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/value.hpp>

namespace vlmest {

/// torch.autocast as a thread sees it (aten/src/ATen/autocast_mode.cpp): whether ops cast their operands now, the lower
/// type, and the copies of weights in that type, which are kept until the outermost context is left.
struct AutocastState {
  DType lower = DType::bf16;
  bool enabled = false;
  int depth = 0;              ///< contexts that have been entered, enabled or not
  std::vector<Value> copies;  ///< by the weight's tensor

  Value& copy_of(TensorId weight) {
    if (static_cast<std::size_t>(weight) >= copies.size()) copies.resize(static_cast<std::size_t>(weight) + 1);
    return copies[static_cast<std::size_t>(weight)];
  }
};

}  // namespace vlmest
