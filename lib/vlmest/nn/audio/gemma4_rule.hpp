// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/layout.hpp>

namespace vlmest::audio {

/// Gemma 4's processor (transformers 5.17 feature_extraction_gemma4.py, processing_gemma4.py): clips are cut at 30
/// seconds and filled up to a multiple of 128 samples; half a frame of silence goes ahead of them. A frame counts where
/// every sample of it, and one more, is the clip's.
struct Gemma4Clips {
  MelSettings mel{.extractor = FeatureExtractor::gemma4, .n_fft = 320};
  std::int64_t multiple = 128;  ///< pad_to_multiple_of
};

inline AudioLayout audio_layout(const Gemma4Clips& r, const AudioSource& a) {
  const std::int64_t n = samples(a, r.mel.sampling_rate);
  AudioLayout l{.samples = std::min(n, r.mel.chunk_samples), .cut = n > r.mel.chunk_samples, .mels = r.mel.mels};
  const std::int64_t filled = (l.samples + r.multiple - 1) / r.multiple * r.multiple, ahead = r.mel.n_fft / 2;
  const auto frames = [&](std::int64_t samples) {
    return std::max<std::int64_t>(floor_div(samples + ahead - r.mel.n_fft - 1, r.mel.hop_length) + 1, 0);
  };
  l.row_frames = frames(filled);
  l.frames = frames(l.samples);
  l.tower_tokens = after_convolutions(after_convolutions(l.row_frames));
  l.llm_tokens = after_convolutions(after_convolutions(l.frames));
  l.text_overhead = 2;  // begin and end
  if (l.frames < 1) l.llm_tokens = 0;
  return check_tokens(l);
}

}  // namespace vlmest::audio
