// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <vlmest/unit/count.hpp>

namespace vlmest {

/// Sides of a filter or of its steps: over frames, over mel bins.
struct SoundSides {
  std::int64_t frames = 1, mels = 1;
};

/// Gemma 3n's audio tower (transformers 5.17 models/gemma3n, Gemma3nAudioConfig): a conformer after the Universal
/// Speech Model (Zhang et al., Google USM, 2023).
struct Gemma3nAudio {
  std::int64_t hidden = 1536;
  std::int64_t layers = 12;
  std::int64_t heads = 8;
  std::int64_t mels = 128;                        ///< input_feat_size
  std::array<std::int64_t, 2> channels{128, 32};  ///< of the two convolutions that shorten the sequence
  std::array<SoundSides, 2> kernels{{{3, 3}, {3, 3}}}, strides{{{2, 2}, {2, 2}}};
  std::int64_t kernel = 5;     ///< of each layer's convolution over time
  std::int64_t block = 12;     ///< conf_attention_chunk_size
  std::int64_t left = 13;      ///< conf_attention_context_left, the state itself included
  std::int64_t right = 0;      ///< conf_attention_context_right
  std::int64_t reduction = 4;  ///< conf_reduction_factor: every so many states are kept
  std::int64_t vocab = 128;    ///< entries of the table that the embedder behind it has for tokens
  std::int64_t tokens = 188;   ///< audio_soft_tokens_per_image: what every clip is filled up to

  std::int64_t past() const { return std::max<std::int64_t>(left - 1, 0); }
  std::int64_t context() const { return block + past() + right; }
  /// Mel bins behind the first so many convolutions; one bin of zeros stands at either border.
  std::int64_t bins(std::size_t convolutions) const {
    std::int64_t n = mels;
    for (std::size_t i = 0; i < convolutions; ++i) n = (n + 2 - kernels[i].mels) / strides[i].mels + 1;
    return n;
  }
  /// States that so many frames leave behind both convolutions, which are filled up with zeros behind the last frame.
  std::int64_t states(std::int64_t frames) const {
    for (const SoundSides& s : strides) frames = (frames - 1) / s.frames + 1;
    return frames;
  }
  /// And behind the layers.
  std::int64_t features(std::int64_t frames) const { return (states(frames) + reduction - 1) / reduction; }
};

}  // namespace vlmest
