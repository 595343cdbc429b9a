// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/layout.hpp>

namespace vlmest::audio {

/// Voxtral's processor: clips are filled up to whole windows, each a row of its own, of which every position gets a
/// feature (transformers 5.17 processing_voxtral.py, _retrieve_input_features; the tokenizer of mistral-common writes
/// as many placeholders behind one marker).
struct WholeWindows {
  MelSettings mel;                ///< its chunk is the window, pad_to_multiple_of
  std::int64_t positions = 1500;  ///< states of a window, on which the encoder insists
  std::int64_t merge = 4;         ///< states that make one feature
};

inline AudioLayout audio_layout(const WholeWindows& r, const AudioSource& a) {
  AudioLayout l{.samples = samples(a, r.mel.sampling_rate), .mels = r.mel.mels, .text_overhead = 1};
  l.rows = (l.samples + r.mel.chunk_samples - 1) / r.mel.chunk_samples;
  l.row_frames = r.mel.chunk_frames();
  if (l.row_frames != checked_mul(r.positions, 2))
    throw Error("processor",
                "windows of " + std::to_string(l.row_frames) + " mel frames, where the encoder takes " +
                    std::to_string(checked_mul(r.positions, 2)) + " and no others",
                "compare chunk_length with audio_config.max_source_positions");
  l.frames = std::min(masked_frames(r.mel, l.samples), checked_mul(l.rows, l.row_frames));
  l.tower_tokens = checked_mul(l.rows, r.positions);
  l.llm_tokens = l.tower_tokens / r.merge;
  return check_tokens(l);
}

}  // namespace vlmest::audio
