// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <string>

#include <vlmest/family/phi4_multimodal/audio_config.hpp>
#include <vlmest/json/hf/audio.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>

/// Phi-4-multimodal's audio encoder out of a Hugging Face config: transformers 5.17, models/phi4_multimodal/
/// configuration_phi4_multimodal.py, Phi4MultimodalAudioConfig.
namespace vlmest::json::hf {

/// Keys that the class reads, of which its forward runs with one value alone.
inline void check_phi4_audio(const Reader& r, const Phi4Audio& a) {
  for (const char* key : {"ext_pw_out_channel", "depthwise_separable_out_channel"})
    if (const std::int64_t n = r.integer(key, 1024, 1, 1 << 20); n != a.hidden)
      r.fail(key, std::to_string(n) + " channels, which the class adds to " + std::to_string(a.hidden),
             "set it to hidden_size");
  // The class reckons it, but takes what a file says.
  if (const std::int64_t bands = a.halved(a.mels); r.integer("nemo_final_size", bands, 1, 1 << 16) != bands)
    r.fail("nemo_final_size", std::to_string(bands) + " bands of each frame are left", "leave it out");
  if (const std::int64_t n = r.integer("downsample_rate", 1, 1, 1 << 16); n != 1)
    r.fail("downsample_rate", std::to_string(n) + ": the class joins no states for its wider projector", "set it to 1");
  if (r.integer("chunk_size", -1, -(1 << 20), 1 << 20) == 0)
    r.fail("chunk_size", "0 is no length of a chunk", "-1 for one chunk");
  r.integer("left_chunk", 18, 0, 1 << 20);
}

/// time_reduction counts the halvings of frames, and must be what they make.
inline std::int64_t read_phi4_halvings(const Reader& r) {
  const std::int64_t n = r.integer("time_reduction", 8, 2, 1 << 16);
  if (!std::has_single_bit(static_cast<std::uint64_t>(n)))
    r.fail("time_reduction", std::to_string(n) + " is no power of two, for which masks do not fit the states",
           "8 as released");
  return std::countr_zero(static_cast<std::uint64_t>(n));
}

inline Phi4Audio read_phi4_audio(const Reader& r) {
  check_part(r, "phi4_multimodal_audio");
  refuse_null(r, {"hidden_size",          "intermediate_size",
                  "num_blocks",           "num_attention_heads",
                  "activation",           "chunk_size",
                  "left_chunk",           "dropout_rate",
                  "ext_pw_out_channel",   "depthwise_separable_out_channel",
                  "depthwise_multiplier", "kernel_size",
                  "conv_activation",      "input_size",
                  "conv_glu_type",        "time_reduction",
                  "bias_max_distance",    "bias_symmetric",
                  "nemo_activation",      "nemo_conv_channels",
                  "downsample_rate"});
  Phi4Audio a;
  a.hidden = r.integer("hidden_size", a.hidden, 1, 1 << 20);
  a.intermediate = r.integer("intermediate_size", a.intermediate, 1, 1 << 24);
  a.layers = r.layers("num_blocks", a.layers);
  a.heads = r.integer("num_attention_heads", a.heads, 1, 1 << 16);
  if (!r.given("head_dim") && a.hidden < a.heads) r.fail("num_attention_heads", "more heads than channels");
  a.head_dim = r.integer("head_dim", a.hidden / a.heads, 1, 1 << 16);
  a.mels = r.integer("input_size", a.mels, 1, 1 << 16);
  a.halvings = read_phi4_halvings(r);
  a.channels = r.integer("nemo_conv_channels", a.channels, 1, 1 << 16);
  a.taps = r.integer("kernel_size", a.taps, 1, 1 << 10);
  a.multiplier = r.integer("depthwise_multiplier", a.multiplier, 1, 1 << 10);
  a.distance = r.integer("bias_max_distance", a.distance, 1, 1 << 24);
  a.symmetric = r.boolean("bias_symmetric", false);
  a.activation = parse_activation(r.string("activation", "swish"));
  a.conv_activation = parse_activation(r.string("conv_activation", "swish"));
  a.gate_activation = parse_activation(r.string("conv_glu_type", "swish"));
  a.halving_activation = parse_activation(r.string("nemo_activation", "relu"));
  no_dropping(r, {"dropout_rate"});
  r.without_effect({"feature_layer"});  // the forward returns the last states
  check_phi4_audio(r, a);
  return a;
}

}  // namespace vlmest::json::hf
