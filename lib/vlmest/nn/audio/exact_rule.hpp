// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/layout.hpp>

namespace vlmest::audio {

/// Qwen3-Omni's processor: clips are neither filled up nor cut (transformers 5.17 processing_qwen3_omni_moe.py,
/// padding=True, truncation=False). Its n_window is taken for the encoder's, as it must be.
struct ExactClips {
  MelSettings mel;
  std::int64_t window = 50;  ///< audio_config.n_window
};

inline AudioLayout audio_layout(const ExactClips& r, const AudioSource& a) {
  AudioLayout l{.samples = samples(a, r.mel.sampling_rate), .mels = r.mel.mels};
  l.frames = l.row_frames = exact_frames(r.mel, l.samples);
  l.tower_tokens = l.llm_tokens = after_halvings(l.frames, r.window);
  return check_tokens(l);
}

}  // namespace vlmest::audio
