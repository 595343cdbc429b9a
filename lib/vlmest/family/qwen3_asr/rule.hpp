// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/audio/qwen3_omni.hpp>

namespace vlmest::audio {

/// Qwen3-ASR's processor (transformers 5.17 processing_qwen3_asr.py, feature_extraction_qwen3_asr.py): clips are filled
/// up to half a second, and their frames to whole chunks; nothing is cut.
struct WholeChunks {
  MelSettings mel;
  std::int64_t window = 50;         ///< n_window: half the frames of a chunk
  std::int64_t min_samples = 8000;  ///< min_length; what fills up to it counts as the clip's
};

inline AudioLayout audio_layout(const WholeChunks& r, const AudioSource& a) {
  AudioLayout l{.samples = samples(a, r.mel.sampling_rate), .mels = r.mel.mels};
  l.samples = std::max(l.samples, r.min_samples);
  l.frames = exact_frames(r.mel, l.samples);
  const std::int64_t chunk = 2 * r.window;
  l.row_frames = checked_mul((l.frames + chunk - 1) / chunk, chunk);
  l.tower_tokens = l.llm_tokens = after_halvings(l.frames, r.window);
  return check_tokens(l);
}

}  // namespace vlmest::audio
