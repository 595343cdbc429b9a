// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/block.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// Layers of one kind run the same ops: all of them, where the layer's type has no overload.
template <class Layer>
constexpr int kind_of(const Layer&) {
  return 0;
}

/// The layers of a tower over square tiles, each followed by what a description adds behind it; `leading` tokens stand
/// ahead of the patches. Appends the input and every layer's result to out.hidden_states where they are asked for.
/// first_parameter(layer) is the first that the layer declared.
template <class Layer, class Run>
Value run_layers(Context& c, const std::vector<Layer>& layers, Value input, std::int64_t leading,
                 const TowerInput& called, TowerOutput& out, Run&& run) {
  if (called.keep_hidden_states) out.hidden_states.push_back(input);
  Value x = std::move(input);
  LayerRepeater repeat(c.b);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& l = layers[i];
    LayerRepeater::Layer place{kind_of(l), l.scope, first_parameter(l)};
    place.input_read_elsewhere = called.reads_input_of(i, layers.size());
    place.gradient_as_result = called.gradient_as_result;
    x = repeat(place, x, {}, [&](const Value& h) { return run(l, h); });
    x = insert_after_layer(c, i, std::move(x), leading);
    if (called.keep_hidden_states) out.hidden_states.push_back(x);
  }
  return x;
}

}  // namespace vlmest
