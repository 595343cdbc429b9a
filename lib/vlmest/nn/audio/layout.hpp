// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <vlmest/unit/count.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest {

/// A clip as it reaches a processor, one channel of it.
struct AudioSource {
  double seconds = 0;
};

/// What a processor makes of a clip: rows of `row_frames` mel frames each, of which `frames` in all show the clip and
/// the others are padding.
struct AudioLayout {
  std::int64_t samples = 0;        ///< that the processor looks at
  bool cut = false;                ///< the clip was longer than that
  std::int64_t mels = 128;         ///< bins of a frame
  std::int64_t rows = 1;           ///< of input_features
  std::int64_t row_frames = 0;     ///< in each of them, padding included
  std::int64_t frames = 0;         ///< that show the clip
  std::int64_t tower_tokens = 0;   ///< positions that the encoder's layers run over, of the whole clip
  std::int64_t llm_tokens = 0;     ///< placeholders
  std::int64_t text_overhead = 0;  ///< tokens that the processor writes around them
};

namespace audio {

/// More than any processor takes at once.
inline constexpr double most_seconds = 86400;

/// a / b rounded down, as Python's // does.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Whose keys a checkpoint's file has: WhisperFeatureExtractor's, Gemma4AudioFeatureExtractor's,
/// Gemma3nAudioFeatureExtractor's or Phi4MultimodalFeatureExtractor's.
enum class FeatureExtractor { whisper, gemma4, gemma3n, phi4_multimodal };

/// How sound becomes mel frames (transformers 5.17 models/whisper/feature_extraction_whisper.py; the defaults are those
/// of most checkpoints' preprocessor_config.json).
struct MelSettings {
  FeatureExtractor extractor = FeatureExtractor::whisper;
  std::int64_t sampling_rate = 16000;
  std::int64_t hop_length = 160;        ///< samples from one frame to the next
  std::int64_t chunk_samples = 480000;  ///< n_samples: chunk_length seconds; Gemma's max_length
  std::int64_t mels = 128;              ///< feature_size
  std::int64_t n_fft = 400;             ///< samples that a frame looks at; Gemma's frame_length, Phi-4's win_length
  std::int64_t compression = 1;         ///< frames of a token, where the feature extractor counts tokens

  std::int64_t chunk_frames() const { return chunk_samples / hop_length; }
};

/// The samples of a clip. Throws Error for lengths that no clip has.
inline std::int64_t samples(const AudioSource& a, std::int64_t sampling_rate) {
  if (!std::isfinite(a.seconds) || a.seconds <= 0 || a.seconds > most_seconds)
    throw Error("plan.audio.seconds", "the length of a clip is out of range", "give up to 86400 seconds");
  return std::max<std::int64_t>(std::llround(a.seconds * static_cast<double>(sampling_rate)), 1);
}

/// Frames of a clip that is not padded: torch.stft pads both ends by reflection, which needs more samples than half a
/// window has, and the last frame is dropped.
inline std::int64_t exact_frames(const MelSettings& m, std::int64_t n) {
  if (n <= m.n_fft / 2)
    throw Error(
        "plan.audio.seconds",
        std::to_string(n) + " samples are fewer than half a window of the feature extractor, which refuses them",
        "give a longer clip");
  return n / m.hop_length;
}

/// Frames of the attention mask that show a clip of n samples within a padded row: attention_mask[:, ::hop_length].
constexpr std::int64_t masked_frames(const MelSettings& m, std::int64_t n) {
  return (n + m.hop_length - 1) / m.hop_length;
}

/// The layout, or Error: the encoder is left with nothing.
inline AudioLayout check_tokens(const AudioLayout& l) {
  if (l.llm_tokens < 1)
    throw Error("plan.audio.seconds", std::to_string(l.frames) + " mel frames are too few for a token",
                "give a longer clip");
  return l;
}

/// Length behind the two convolutions of Whisper's encoder and a pooling of pairs
/// (modeling_qwen2_audio.py, _get_feat_extract_output_lengths).
constexpr std::int64_t after_convolutions(std::int64_t frames) { return floor_div(frames - 1, 2) + 1; }
constexpr std::int64_t after_pooling(std::int64_t states) { return floor_div(states - 2, 2) + 1; }

/// A dimension behind the three convolutions of the encoder AuT (modeling_qwen3_omni_moe.py).
constexpr std::int64_t halved_thrice(std::int64_t n) {
  return after_convolutions(after_convolutions(after_convolutions(n)));
}
/// Frames behind them, in chunks of 2 `window`: _get_feat_extract_output_lengths, which takes a whole chunk for 13
/// states whatever its length is. Throws Error for chunks that leave more or fewer: the model's masks do not fit them.
inline std::int64_t after_halvings(std::int64_t frames, std::int64_t window) {
  if (halved_thrice(2 * window) != 13)
    throw Error("model.audio_config.n_window",
                std::to_string(window) + ": chunks of " + std::to_string(2 * window) + " frames leave " +
                    std::to_string(halved_thrice(2 * window)) + " states, where transformers' class counts 13",
                "give 49 to 52");
  const std::int64_t rest = after_convolutions(frames % (2 * window));
  return after_convolutions(after_convolutions(rest)) + frames / (2 * window) * 13;
}

}  // namespace audio
}  // namespace vlmest
