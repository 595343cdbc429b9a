// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/audio/layout.hpp>

/// Feature extractors' keys: preprocessor_config.json's, or those below "feature_extractor" of processor_config.json.
namespace vlmest::json {

inline constexpr auto audio_keys = {
    "sampling_rate", "hop_length",    "n_fft",  "feature_size",  "chunk_length",
    "n_samples",     "nb_max_frames", "dither", "padding_value", "return_attention_mask"};

/// feature_extraction_whisper.py, __init__: what a file leaves out is the class's own; n_samples and nb_max_frames
/// follow from chunk_length.
inline void read_audio_keys(ProcessorKeys& k, audio::MelSettings& m) {
  k.ignore(audio_keys);
  m.sampling_rate = k.integer("sampling_rate", 16000, 1, 1 << 20);
  m.hop_length = k.integer("hop_length", 160, 1, 1 << 16);
  m.n_fft = k.integer("n_fft", 400, 2, 1 << 16);
  k.same("feature_size", m.mels, "audio_config.num_mel_bins");
  m.chunk_samples = checked_mul(k.integer("chunk_length", 30, 1, 1 << 16), m.sampling_rate);
}

}  // namespace vlmest::json
