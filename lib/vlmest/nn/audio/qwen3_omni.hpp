// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/nn/audio/conv.hpp>
#include <vlmest/nn/audio/packed_encoder.hpp>

namespace vlmest {

/// Qwen3-Omni's audio encoder AuT (transformers 5.17 models/qwen3_omni_moe, Qwen3OmniMoeAudioEncoder): three 2-D
/// convolutions over chunks of a second, which leave 13 states of 100 frames; Whisper's layers over all clips, each
/// state sees those of its window.
struct Qwen3OmniAudio {
  WhisperWidths widths{.key_bias = true};
  std::int64_t mels = 128;
  std::int64_t layers = 32;
  std::int64_t positions = 1500;    ///< max_source_positions
  std::int64_t window = 50;         ///< n_window: half the frames of a chunk
  std::int64_t window_infer = 800;  ///< n_window_infer: frames that see each other
  std::int64_t conv_chunks = 500;   ///< conv_chunksize: chunks that the convolutions take at a time
  std::int64_t channels = 480;      ///< downsample_hidden_size
  std::int64_t out = 3584;          ///< output_dim
};

struct Qwen3OmniAudioTower {
  const Qwen3OmniAudio* config = nullptr;
  ScopeId scope = 0, activation_scope = 0;
  Sinusoids positions;
  std::vector<WhisperLayer> layers;
  LayerNorm norm;
  HalvingConv2d conv1, conv2, conv3;
  Linear conv_out, proj1, proj2;
};

/// In the order of Qwen3OmniMoeAudioEncoder.__init__, in the current scope.
inline Qwen3OmniAudioTower make_tower(Context& c, const Qwen3OmniAudio& g) {
  Qwen3OmniAudioTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t width = g.widths.hidden;
  t.positions = make_sinusoids(c, g.positions, width);
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_whisper_layer(c, g.widths, i); });
  t.norm = make_layer_norm(c, "ln_post", width);
  t.conv1 = make_halving_conv2d(c, "conv2d1", 1, g.channels);
  t.conv2 = make_halving_conv2d(c, "conv2d2", g.channels, g.channels);
  t.conv3 = make_halving_conv2d(c, "conv2d3", g.channels, g.channels);
  t.conv_out = make_linear(c, "conv_out", checked_mul(g.channels, audio::halved_thrice(g.mels)), width, false);
  t.proj1 = make_linear(c, "proj1", width, width, true);
  t.activation_scope = c.b.child("act");
  t.proj2 = make_linear(c, "proj2", width, g.out, true);
  return t;
}

/// _get_feat_extract_output_lengths on the device.
inline Value halving_lengths(const Value& frames) {
  using namespace eager;
  Value chunks;
  const Value rest = pointwise("remainder.Scalar", DType::int64, frames);
  const Value once = halved(rest);
  Value states = halved(halved(once));
  chunks = mul_scalar(floor_divide(frames));
  return add(std::move(states), std::move(chunks));
}

/// get_audio_cu_seqlens: windows of each clip; the host asks for the number of whole ones and whether something is left
/// over, which torch.tensor() then reads by itself.
inline Segments window_boundaries(Context& c, const Value& chunk_lengths, const Value& lengths,
                                  std::span<const AudioLayout> clips, const Qwen3OmniAudio& g, std::int64_t longest) {
  using namespace eager;
  Segments s;
  const Value states = halving_lengths(lengths);
  const Value of_chunks = halving_lengths(chunk_lengths);
  item(reduce("max", DType::int64, Shape{}, of_chunks));
  const std::int64_t window = checked_mul(longest, g.window_infer / (2 * g.window));
  std::vector<Value> rests;  // tensors in a list
  for (std::size_t i = 0; i < clips.size(); ++i) {
    const Value one = select(states, 0, static_cast<std::int64_t>(i));
    item(floor_divide(one));
    Value rest = pointwise("remainder.Scalar", DType::int64, one);
    item(compare_scalar("ne.Scalar", rest));
    const std::int64_t n = clips[i].tower_tokens;
    for (std::int64_t at = 0; at < n; at += window) s.lengths.push_back(std::min(window, n - at));
    rests.push_back(std::move(rest));
  }
  const Value boundaries = from_host(c.b, {static_cast<std::int64_t>(s.lengths.size()) + 1}, DType::int64);
  s.cu_seqlens = cumsum(boundaries, DType::int32);
  return s;
}

/// Three convolutions of chunks[n, 1, mels, frames], each with its gelu, conv_chunks of them at a time.
inline std::vector<Value> halve_chunks(Context& c, const Qwen3OmniAudioTower& t, const Value& chunks) {
  using namespace eager;
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < chunks.size(0); at += t.config->conv_chunks)
    sizes.push_back(std::min(t.config->conv_chunks, chunks.size(0) - at));
  std::vector<Value> r;
  for (Value& part : split(chunks, sizes, 0)) {
    Value y = unary(functions::gelu, input_embedding(c, forward(c, t.conv1, part)));
    y = unary(functions::gelu, forward(c, t.conv2, y));
    y = unary(functions::gelu, forward(c, t.conv3, y));
    r.push_back(std::move(y));
  }
  return r;
}

/// Qwen3OmniMoeAudioEncoder.forward: features[mels, frames of all clips], lengths int64[clips] -> [tokens, out].
inline Value forward(Context& c, const Qwen3OmniAudioTower& t, const Value& features, const Value& lengths,
                     std::span<const AudioLayout> clips) {
  using namespace eager;
  const Qwen3OmniAudio& g = *t.config;
  InScope in(c.b, t.scope);
  const ClipChunks chunks = chunk_and_pad(features, lengths, clips, g.window);
  std::int64_t states = 0, longest = 0;
  for (const std::int64_t frames : chunks.frames) {
    const std::int64_t n = audio::after_halvings(frames, g.window);
    states = checked_add(states, n);
    longest = std::max(longest, n);
  }
  const Value valid = [&] {
    const Value after = halving_lengths(chunks.lengths);
    return valid_indices(after, longest, states);
  }();
  const Segments segments = window_boundaries(c, chunks.lengths, lengths, clips, g, longest);
  check_longest(c, segments);
  std::vector<Value> parts = halve_chunks(c, t, unsqueeze(chunks.features, 1)), references = parts;
  Value embeds = cat(references, 0);
  {
    Value states_first = contiguous(permute(embeds, {0, 3, 1, 2}));
    embeds = forward(c, t.conv_out, reshape(std::move(states_first), {embeds.size(0), embeds.size(3), -1}));
  }
  Value rows = to(unsqueeze(slice(Value(c.b, t.positions.table), 0, 0, embeds.size(1)), 0), embeds.dtype());
  embeds = add(embeds, rows);
  Value x = index_select(reshape(embeds, {-1, g.widths.hidden}), 0, valid);
  x = packed_layers(c, t.layers, g.widths, std::move(x), segments);
  const Value outputs = x;  // layer_outputs, alive until the function returns
  x = forward(c, t.norm, x);
  x = forward(c, t.proj1, x);
  {
    InScope a(c.b, t.activation_scope);
    x = activate(c, g.widths.activation, x);
  }
  x = forward(c, t.proj2, x);
  return x;
}

}  // namespace vlmest
