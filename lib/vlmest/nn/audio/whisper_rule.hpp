// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/layout.hpp>

namespace vlmest::audio {

/// Processors that fill every clip up to the feature extractor's length and cut what is longer, before an encoder that
/// halves the frames and a pooling of pairs (transformers 5.17 processing_qwen2_audio.py, _process_audio;
/// processing_qwen2_5_omni.py, Qwen2_5OmniProcessor.__call__).
struct FilledClips {
  MelSettings mel;
  bool layers_see_padding = true;  ///< else the encoder takes the padding out first
  std::int64_t positions = 0;      ///< states that the encoder insists on; 0: it takes any number
};

inline AudioLayout audio_layout(const FilledClips& r, const AudioSource& a) {
  const std::int64_t n = samples(a, r.mel.sampling_rate), most = r.mel.chunk_samples;
  if (r.positions > 0 && r.mel.chunk_frames() != checked_mul(r.positions, 2))
    throw Error("processor",
                "clips of " + std::to_string(r.mel.chunk_frames()) + " mel frames, where the encoder takes " +
                    std::to_string(checked_mul(r.positions, 2)) + " and no others",
                "compare chunk_length with audio_config.max_source_positions");
  AudioLayout l{.samples = std::min(n, most), .cut = n > most, .mels = r.mel.mels};
  l.row_frames = r.mel.chunk_frames();
  l.frames = masked_frames(r.mel, l.samples);
  l.tower_tokens = after_convolutions(r.layers_see_padding ? l.row_frames : l.frames);
  l.llm_tokens = after_pooling(after_convolutions(l.frames));
  return check_tokens(l);
}

}  // namespace vlmest::audio
