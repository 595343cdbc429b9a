// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/nn/sequence.hpp>

namespace vlmest {

/// What a model's forward takes for its clips.
struct AudioInputs {
  Value features;  ///< input_features[rows, mels, frames] in the activations' type; none without clips
  Value mask;      ///< of frames that show a clip, [rows, frames]
};

/// Rows of all clips.
inline std::int64_t audio_rows(std::span<const AudioLayout> clips) {
  std::int64_t n = 0;
  for (const AudioLayout& l : clips) n = checked_add(n, l.rows);
  return n;
}
/// Placeholders of all clips.
inline std::int64_t audio_feature_count(std::span<const AudioLayout> clips) {
  std::int64_t n = 0;
  for (const AudioLayout& l : clips) n = checked_add(n, l.llm_tokens);
  return n;
}
/// Whether a row holds frames that show nothing.
inline bool has_padding(std::span<const AudioLayout> clips) {
  for (const AudioLayout& l : clips)
    if (l.frames < checked_mul(l.rows, l.row_frames)) return true;
  return false;
}

/// Features in rows of mel bins, and the feature extractor's mask (int32, as numpy makes it) under the name that the
/// processor gives it; nullptr: it hands none over.
inline AudioInputs make_audio_inputs(Context& c, const Sequences& s, const char* mask) {
  AudioInputs r;
  if (s.audios.empty()) return r;
  const std::int64_t rows = audio_rows(s.audios), frames = s.audios.front().row_frames;
  r.features = c.b.existing("input_features", Role::input, c.dtype(), {rows, s.audios.front().mels, frames});
  if (mask != nullptr) r.mask = c.b.existing(mask, Role::input, DType::int32, {rows, frames});
  return r;
}

}  // namespace vlmest
