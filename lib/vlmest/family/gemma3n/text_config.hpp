// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/nn/activation.hpp>

namespace vlmest {

/// The language model of Gemma 3n (transformers 5.17 models/gemma3n, Gemma3nTextConfig): several copies of the hidden
/// states, of which one goes through each layer; layers that slide and full ones; the last layers may take the keys and
/// values of earlier ones.
struct Gemma3nTextConfig {
  std::int64_t vocab = 262400;
  std::int64_t hidden = 2048;
  std::int64_t layers = 35;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 256;
  bool attention_bias = false;
  bool attention_dropout = false;  ///< in training mode
  Activation activation = Activation::gelu_tanh;
  std::int64_t window = 512;
  std::int64_t shared = 15;      ///< layers at the end that have no keys and values of their own
  std::int64_t per_layer = 256;  ///< width of what each layer gets of each token beside its input
  std::int64_t per_layer_vocab = 262144;
  std::int64_t copies = 4;    ///< altup_num_inputs
  std::int64_t active = 0;    ///< altup_active_idx: the copy that goes through the layers
  bool scales_output = true;  ///< altup_correct_scale
  std::int64_t laurel_rank = 64;
  std::vector<std::int64_t> inner;  ///< intermediate_size, per layer
  std::vector<bool> sliding;        ///< per layer
  std::vector<bool> sparse;         ///< per layer: activation_sparsity_pattern is above zero

  std::int64_t first_shared() const { return layers - shared; }
  bool slides(std::int64_t layer) const { return sliding[static_cast<std::size_t>(layer)]; }
  bool shares(std::int64_t layer) const { return layer >= first_shared(); }
  /// The last layer of its type that has keys and values, which those that share take.
  bool lends(std::int64_t layer) const {
    if (shares(layer)) return false;
    for (std::int64_t i = layer + 1; i < first_shared(); ++i)
      if (slides(i) == slides(layer)) return false;
    return true;
  }
  /// The first layer that runs as this one does.
  std::int64_t first_like(std::int64_t layer) const {
    const auto at = [](const auto& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; };
    for (std::int64_t i = 0; i < layer; ++i)
      if (slides(i) == slides(layer) && shares(i) == shares(layer) && lends(i) == lends(layer) &&
          at(sparse, i) == at(sparse, layer) && at(inner, i) == at(inner, layer))
        return i;
    return layer;
  }
};

}  // namespace vlmest
