// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/family/gemma3n/audio_config.hpp>
#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/levers.hpp>

namespace vlmest::image_processor {

/// Gemma 3n: one square of every picture, as many tokens for each (transformers 5.17 processing_gemma3n.py).
struct Gemma3n {
  std::int64_t image_size = 768;
  std::int64_t image_tokens = 256;  ///< vision_soft_tokens_per_image
  std::int64_t audio_tokens = 188;  ///< audio_soft_tokens_per_image: what its processor must write for a clip
};

/// Each picture stands between a begin and an end token and two blank lines, one token each in Gemma's vocabulary.
constexpr ImageLayout layout(const Gemma3n& r, ImageSize image) {
  check(image);
  check("vision_soft_tokens_per_image", r.image_tokens);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = {16, 16};  // positions of the map that the tower gives
  l.tower_tokens = l.patches.count();
  l.llm_tokens = r.image_tokens;
  l.text_overhead = 4;
  return l;
}

inline std::vector<Gemma3n> lower(const Gemma3n&, const ImageLayout&) { return {}; }
inline std::string limit_line(const Gemma3n&) { return {}; }

}  // namespace vlmest::image_processor

namespace vlmest::audio {

/// Gemma 3n's processor (transformers 5.17 feature_extraction_gemma3n.py, processing_gemma3n.py): clips are cut at 30
/// seconds and filled up to a multiple of 128 samples; a frame looks at one sample more than its length. A frame counts
/// where its first sample is the clip's. Every clip has the same number of tokens, between a begin and an end token and
/// two blank lines.
struct Gemma3nClips {
  MelSettings mel{.extractor = FeatureExtractor::gemma3n, .n_fft = 512};
  Gemma3nAudio tower;
  std::int64_t multiple = 128;  ///< pad_to_multiple_of
};

/// Throws Error where the tower leaves more features than a clip has tokens: the model fills up, it does not cut.
inline AudioLayout audio_layout(const Gemma3nClips& r, const AudioSource& a) {
  const std::int64_t n = samples(a, r.mel.sampling_rate);
  AudioLayout l{.samples = std::min(n, r.mel.chunk_samples), .cut = n > r.mel.chunk_samples, .mels = r.mel.mels};
  const std::int64_t filled = (l.samples + r.multiple - 1) / r.multiple * r.multiple;
  l.row_frames = std::max<std::int64_t>(floor_div(filled - r.mel.n_fft - 1, r.mel.hop_length) + 1, 0);
  l.frames = std::min(masked_frames(r.mel, l.samples), l.row_frames);
  if (l.row_frames < 1) return check_tokens(l);
  l.tower_tokens = r.tower.states(l.row_frames);
  l.llm_tokens = r.tower.tokens;
  l.text_overhead = 4;
  if (const std::int64_t most = r.tower.features(l.row_frames); most > l.llm_tokens)
    throw Error("plan.audio.seconds",
                std::to_string(most) + " features of a clip, of which the model has places for " +
                    std::to_string(l.llm_tokens) + " (audio_soft_tokens_per_image)",
                "give a shorter clip");
  return l;
}

}  // namespace vlmest::audio
