// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/nn/audio/qwen3_omni.hpp>
#include <vlmest/nn/audio/whisper_encoder.hpp>

/// What configs of audio encoders share: Whisper's keys (transformers 5.17, models/whisper/configuration_whisper.py and
/// the classes of models/qwen2_audio, qwen2_5_omni, qwen3_omni_moe, qwen3_asr that repeat them).
namespace vlmest::json::hf {

/// A text_config over the _default_text_config_kwargs of its composite (configuration_voxtral.py,
/// configuration_glmasr.py).
inline nlohmann::json with_defaults(nlohmann::json defaults, const Reader& given) {
  defaults.update(given.value());
  return defaults;
}

/// Throws Error for a rate above zero, whose masks or dropped layers are not modelled.
inline void no_dropping(const Reader& r, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (read_dropout(r, key, 0.0)) r.fail(key, "dropping in an audio encoder is not modelled", "set it to 0");
}

/// encoder_layers, or by its attribute_map num_hidden_layers.
inline std::int64_t read_whisper_layers(const Reader& r, std::int64_t absent) {
  return r.layers(r.either("encoder_layers", "num_hidden_layers"), absent);
}

/// d_model, encoder_ffn_dim, encoder_attention_heads, activation_function; the first three by other names too.
inline WhisperWidths read_whisper_widths(const Reader& r, WhisperWidths d = {}) {
  const char* const heads = r.either("encoder_attention_heads", "num_attention_heads");
  d.hidden = r.integer(r.either("d_model", "hidden_size"), d.hidden, 2, 1 << 20);
  d.intermediate = r.integer(r.either("encoder_ffn_dim", "intermediate_size"), d.intermediate, 1, 1 << 24);
  d.heads = r.integer(heads, d.heads, 1, 1 << 16);
  d.activation = parse_activation(r.string("activation_function", "gelu"));
  divides(r, heads, d.hidden, d.heads);
  no_dropping(r, {"dropout", "attention_dropout", "activation_dropout", "encoder_layerdrop"});
  return d;
}

/// Of a config class with Whisper's names.
inline WhisperEncoder read_whisper(const Reader& r, WhisperEncoder d) {
  d.widths = read_whisper_widths(r, d.widths);
  d.mels = r.integer("num_mel_bins", d.mels, 1, 1 << 16);
  d.layers = read_whisper_layers(r, d.layers);
  d.positions = r.integer("max_source_positions", d.positions, 1, 1 << 20);
  return d;
}

/// Chunks and windows of the encoder AuT: n_window, n_window_infer, downsample_hidden_size, output_dim, and the
/// positions of a chunk's states, which are called `positions`.
inline void read_chunk_windows(const Reader& r, const char* positions, Qwen3OmniAudio& d) {
  d.window = r.integer("n_window", d.window, 1, 1 << 16);
  d.window_infer = r.integer("n_window_infer", d.window_infer, 2 * d.window, 1 << 24);
  d.channels = r.integer("downsample_hidden_size", d.channels, 1, 1 << 16);
  d.out = r.integer("output_dim", d.out, 1, 1 << 20);
  if (d.widths.hidden % 2 != 0) r.fail("d_model", "sinusoids need an even width");
  d.positions = r.integer(positions, d.positions, 1, 1 << 20);
  if (audio::halved_thrice(2 * d.window) > d.positions) r.fail(positions, "fewer positions than a chunk leaves states");
}

}  // namespace vlmest::json::hf
