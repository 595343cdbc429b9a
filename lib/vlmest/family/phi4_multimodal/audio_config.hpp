// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/nn/activation.hpp>

namespace vlmest {

/// The conformer that Phi-4-multimodal hears with (Gulati et al., arXiv:2005.08100; transformers 5.17
/// configuration_phi4_multimodal.py, Phi4MultimodalAudioConfig).
struct Phi4Audio {
  std::int64_t hidden = 1024;
  std::int64_t intermediate = 1536;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t head_dim = 64;
  std::int64_t mels = 80;        ///< input_size
  std::int64_t halvings = 3;     ///< of frames and mel bins: two to their power is time_reduction
  std::int64_t channels = 1024;  ///< of the convolutions that halve
  std::int64_t taps = 3;         ///< of each layer's convolution over time
  std::int64_t multiplier = 1;   ///< channels that it makes of each
  std::int64_t distance = 1000;  ///< bias_max_distance
  bool symmetric = false;        ///< both directions share their biases
  Activation activation = Activation::silu, conv_activation = Activation::silu, gate_activation = Activation::silu,
             halving_activation = Activation::relu;

  /// A dimension behind the convolutions that halve it.
  std::int64_t halved(std::int64_t n) const {
    for (std::int64_t i = 0; i < halvings; ++i) n = (n + 1) / 2;
    return n;
  }
  std::int64_t states(std::int64_t frames) const { return halved(frames); }
  std::int64_t biases() const { return symmetric ? distance : 2 * distance; }
};

}  // namespace vlmest
