// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/tokens/image.hpp>

namespace vlmest {

/// What a vision tower is called with.
struct TowerInput {
  Value pixels;                        ///< in the tower's own layout
  std::span<const ImageLayout> images; ///< of the whole batch, in order
  bool keep_hidden_states = false;     ///< output_hidden_states=True
};

/// What it returns; all of it stays alive as long as the caller keeps this.
struct TowerOutput {
  Value last;                        ///< last_hidden_state
  Value pooled;                      ///< pooler_output, where the tower computes one
  std::vector<Value> hidden_states;  ///< the first layer's input and every layer's output
};

}  // namespace vlmest
