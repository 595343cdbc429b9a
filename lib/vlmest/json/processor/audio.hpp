// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/audio/layout.hpp>

/// Feature extractors' keys: preprocessor_config.json's, or those below "feature_extractor" of processor_config.json.
namespace vlmest::json {

inline constexpr auto audio_keys = {
    "sampling_rate", "hop_length",    "n_fft",  "feature_size",  "chunk_length",
    "n_samples",     "nb_max_frames", "dither", "padding_value", "return_attention_mask"};

/// feature_extraction_gemma4.py and feature_extraction_gemma3n.py, __init__: frame_length and hop_length follow from
/// milliseconds, whatever a file says of them, and no key says where clips are cut.
inline void read_gemma_audio_keys(ProcessorKeys& k, audio::MelSettings& m, double frame_ms) {
  k.ignore({"frame_length", "hop_length", "fft_length", "fft_overdrive", "preemphasis", "preemphasis_htk_flavor",
            "input_scale_factor", "mel_floor", "min_frequency", "max_frequency", "per_bin_mean", "per_bin_stddev"});
  const auto samples = [&](const char* key, double absent) {
    const double n = std::nearbyint(static_cast<double>(m.sampling_rate) * k.number(key, absent) / 1000.0);
    if (!(n >= 1.0 && n <= 1 << 16)) k.fail(key, "must give 1 to 65536 samples");
    return static_cast<std::int64_t>(n);
  };
  m.n_fft = samples("frame_length_ms", frame_ms);
  m.hop_length = samples("hop_length_ms", 10.0);
}

/// feature_extraction_phi4_multimodal.py, __init__ and _compute_audio_embed_size.
inline void read_phi4_audio_keys(ProcessorKeys& k, audio::MelSettings& m) {
  k.ignore({"n_fft", "preemphasis", "mel_min_frequency", "mel_max_frequency", "padding_side"});
  k.same("feature_size", m.mels, "audio_config.input_size");
  m.hop_length = k.integer("hop_length", 160, 1, 1 << 16);
  m.n_fft = k.integer("win_length", 400, 1, 1 << 16);
  m.compression = k.integer("audio_compression_rate", 8, 1, 1 << 16);
  for (const char* key : {"audio_downsample_rate", "audio_feat_stride"})
    if (k.integer(key, 1, 1, 1 << 16) != 1)
      k.fail(key, "others than 1 count tokens that the encoder gives no features for", "1 as released");
}

/// feature_extraction_whisper.py, __init__: what a file leaves out is the class's own; n_samples and nb_max_frames
/// follow from chunk_length.
inline void read_audio_keys(ProcessorKeys& k, audio::MelSettings& m) {
  k.ignore(audio_keys);
  m.sampling_rate = k.integer("sampling_rate", 16000, 1, 1 << 20);
  if (m.extractor == audio::FeatureExtractor::gemma4) {
    k.same("feature_size", m.mels, "the subsampling's first convolution");
    return read_gemma_audio_keys(k, m, 20.0);
  }
  if (m.extractor == audio::FeatureExtractor::gemma3n) {
    k.same("feature_size", m.mels, "audio_config.input_feat_size");
    return read_gemma_audio_keys(k, m, 32.0);
  }
  if (m.extractor == audio::FeatureExtractor::phi4_multimodal) return read_phi4_audio_keys(k, m);
  m.hop_length = k.integer("hop_length", 160, 1, 1 << 16);
  m.n_fft = k.integer("n_fft", 400, 2, 1 << 16);
  k.same("feature_size", m.mels, "audio_config.num_mel_bins");
  m.chunk_samples = checked_mul(k.integer("chunk_length", 30, 1, 1 << 16), m.sampling_rate);
}

}  // namespace vlmest::json
