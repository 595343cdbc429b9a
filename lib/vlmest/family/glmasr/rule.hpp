// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/layout.hpp>

namespace vlmest::audio {

/// GLM-ASR's processor (transformers 5.17 processing_glmasr.py, _process_audio): clips are cut into windows of 30
/// seconds, the last one filled up, and end with the last whole window of max_audio_len.
struct FilledWindows {
  MelSettings mel;                  ///< its chunk is the window
  std::int64_t most_seconds = 655;  ///< max_audio_len
  std::int64_t merge = 4;           ///< states that make one feature
};

inline AudioLayout audio_layout(const FilledWindows& r, const AudioSource& a) {
  const std::int64_t n = samples(a, r.mel.sampling_rate), window = r.mel.chunk_samples;
  const std::int64_t most = checked_mul(r.most_seconds, r.mel.sampling_rate) / window;
  AudioLayout l{.samples = n, .mels = r.mel.mels};
  l.rows = (n + window - 1) / window;
  if (l.rows > most) {
    l.rows = most;
    l.samples = checked_mul(most, window);
    l.cut = true;
  }
  l.row_frames = r.mel.chunk_frames();
  if (after_convolutions(l.row_frames) % r.merge != 0)
    throw Error("processor",
                "windows of " + std::to_string(l.row_frames) + " mel frames leave " +
                    std::to_string(after_convolutions(l.row_frames)) + " states, which cannot be merged by " +
                    std::to_string(r.merge),
                "compare chunk_length and hop_length with the checkpoint's published file");
  const std::int64_t last = masked_frames(r.mel, l.samples - checked_mul(l.rows - 1, window));
  l.frames = checked_add(checked_mul(l.rows - 1, l.row_frames), last);
  l.tower_tokens = checked_mul(l.rows, after_convolutions(l.row_frames));
  l.llm_tokens = floor_div(after_convolutions(l.frames) - r.merge, r.merge) + 1;
  return check_tokens(l);
}

}  // namespace vlmest::audio
