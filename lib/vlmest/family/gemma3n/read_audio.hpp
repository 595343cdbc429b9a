// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/family/gemma3n/audio_config.hpp>
#include <vlmest/family/gemma3n/read_text.hpp>

/// Gemma 3n's audio tower out of a Hugging Face config: transformers 5.17, models/gemma3n/configuration_gemma3n.py,
/// Gemma3nAudioConfig.
namespace vlmest::json::hf {

/// A pair of numbers within [1, high] for each of the two convolutions.
inline std::array<SoundSides, 2> read_sound_sides(const Reader& r, const char* key, std::array<SoundSides, 2> absent) {
  if (!r.given(key)) return absent;
  constexpr std::int64_t high = 1 << 10;
  const auto refuse = [&] { r.fail(key, "expected two pairs of whole numbers from 1 to " + std::to_string(high)); };
  const auto& list = r.value()[key];
  if (!list.is_array() || list.size() != 2) refuse();
  std::array<SoundSides, 2> sides;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!list[i].is_array() || list[i].size() != 2) refuse();
    for (const auto& n : list[i])
      if (!n.is_number_integer() || n < 1 || n > high) refuse();
    sides[i] = {list[i][0].get<std::int64_t>(), list[i][1].get<std::int64_t>()};
  }
  return sides;
}

/// The class's convolutions have one bin of zeros at either border, whatever their filters are, and zeros behind the
/// frames: none may be left without a bin.
inline void read_sound_convolutions(const Reader& r, Gemma3nAudio& a) {
  const auto channels = r.integers("sscp_conv_channel_size", {a.channels[0], a.channels[1]});
  if (channels.size() != 2 || channels[0] < 1 || channels[1] < 1 || channels[0] > 1 << 16 || channels[1] > 1 << 16)
    r.fail("sscp_conv_channel_size", "expected the channels of two convolutions");
  a.channels = {channels[0], channels[1]};
  a.kernels = read_sound_sides(r, "sscp_conv_kernel_size", a.kernels);
  a.strides = read_sound_sides(r, "sscp_conv_stride_size", a.strides);
  for (std::size_t i = 0; i < 2; ++i)
    if (a.bins(i) + 2 < a.kernels[i].mels)
      r.fail("sscp_conv_kernel_size",
             "a filter over " + std::to_string(a.kernels[i].mels) + " mel bins, of which " + std::to_string(a.bins(i)) +
                 " are left",
             "give a smaller one, or a larger input_feat_size");
}

inline Gemma3nAudio read_gemma3n_audio(const Reader& r, std::int64_t tokens) {
  check_part(r, "gemma3n_audio");
  refuse_null(r, {"vocab_size", "vocab_offset", "input_feat_size", "hidden_size", "conf_attention_chunk_size",
                  "conf_attention_context_left", "conf_attention_context_right", "conf_attention_logit_cap",
                  "conf_num_attention_heads", "conf_num_hidden_layers", "conf_conv_kernel_size",
                  "conf_reduction_factor", "sscp_conv_channel_size", "sscp_conv_kernel_size", "sscp_conv_stride_size"});
  Gemma3nAudio a;
  a.vocab = r.integer("vocab_size", a.vocab);
  a.mels = r.integer("input_feat_size", a.mels, 1, 1 << 16);
  a.hidden = r.integer("hidden_size", a.hidden, 2, 1 << 20);
  if (a.hidden % 2 != 0) r.fail("hidden_size", "the sines and cosines of positions need an even width");
  a.layers = r.layers("conf_num_hidden_layers", a.layers);
  a.heads = r.integer("conf_num_attention_heads", a.heads, 1, 1 << 16);
  divides(r, "conf_num_attention_heads", a.hidden, a.heads);
  a.kernel = r.integer("conf_conv_kernel_size", a.kernel, 1, 1 << 10);
  a.block = r.integer("conf_attention_chunk_size", a.block, 1, 1 << 16);
  a.left = r.integer("conf_attention_context_left", a.left, 0, 1 << 16);
  a.right = r.integer("conf_attention_context_right", a.right, 0, 1 << 16);
  a.reduction = r.integer("conf_reduction_factor", a.reduction, 1, 1 << 16);
  a.tokens = tokens;
  read_sound_convolutions(r, a);
  return a;
}

}  // namespace vlmest::json::hf
