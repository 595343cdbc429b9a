// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include <vlmest/nn/audio/qwen3_omni.hpp>

namespace vlmest {

/// Qwen3-ASR's audio encoder (transformers 5.17 models/qwen3_asr, Qwen3ASREncoder): Qwen3-Omni's over rows of whole
/// chunks, without the layers behind it. `chunks` has its sizes.
struct Qwen3AsrAudio {
  Qwen3OmniAudio chunks{.widths = {.hidden = 1024, .intermediate = 4096, .heads = 16, .key_bias = true},
                        .layers = 24,
                        .positions = 13};  ///< max_position_embeddings: states of a chunk
};

struct Qwen3AsrTower {
  const Qwen3AsrAudio* config = nullptr;
  ScopeId scope = 0;
  Sinusoids positions;
  std::vector<WhisperLayer> layers;
  LayerNorm norm;
  HalvingConv2d conv1, conv2, conv3;
  Linear conv_out;
};

/// In the order of Qwen3ASREncoder.__init__, in the current scope.
inline Qwen3AsrTower make_tower(Context& c, const Qwen3AsrAudio& config) {
  Qwen3AsrTower t{.config = &config, .scope = c.b.scope()};
  const Qwen3OmniAudio& g = config.chunks;
  t.positions = make_sinusoids(c, g.positions, g.widths.hidden);
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_whisper_layer(c, g.widths, i); });
  t.norm = make_layer_norm(c, "ln_post", g.widths.hidden);
  t.conv1 = make_halving_conv2d(c, "conv2d1", 1, g.channels);
  t.conv2 = make_halving_conv2d(c, "conv2d2", g.channels, g.channels);
  t.conv3 = make_halving_conv2d(c, "conv2d3", g.channels, g.channels);
  t.conv_out =
      make_linear(c, "conv_out", checked_mul(g.channels, audio::halved_thrice(g.mels)), g.widths.hidden, false);
  return t;
}

/// _post_cnn_length: lengths of chunks behind the convolutions; empty ones stay empty.
inline Value states_of_chunks(Value lengths) {
  using namespace eager;
  for (int i = 0; i < 3; ++i) {
    Value some = compare_scalar("gt.Scalar", lengths);
    Value next = halved(lengths);
    Value zeros = zeros_like(lengths);
    lengths = where(std::move(some), std::move(next), std::move(zeros));
  }
  return lengths;
}

/// Qwen3ASREncoder.forward: features[clips, mels, frames] and mask[clips, frames] -> [tokens, hidden].
inline Value forward(Context& c, const Qwen3AsrTower& t, const Value& features, const Value& mask,
                     std::span<const AudioLayout> clips) {
  using namespace eager;
  const Qwen3OmniAudio& g = t.config->chunks;
  InScope in(c.b, t.scope);
  const std::int64_t batch = features.size(0), length = 2 * g.window, chunks = features.size(2) / length;
  std::int64_t states = 0, longest = 0;
  for (const AudioLayout& l : clips)
    for (std::int64_t left = l.frames; left > 0; left -= length) {
      const std::int64_t n = audio::halved_thrice(std::min(left, length));
      states = checked_add(states, n);
      longest = std::max(longest, audio::after_halvings(std::min(left, length), g.window));
    }
  const Value lengths = sum(mask, -1, false);
  const auto of_chunks = [&] { return view(sum(view(mask, {batch, chunks, length}), -1, false), {batch * chunks}); };
  const Value chunk_lengths = of_chunks();
  const Segments segments = window_boundaries(c, chunk_lengths, lengths, clips, g, longest);
  check_longest(c, segments);
  const Value rows = reshape(permute(view(features, {batch, g.mels, chunks, length}), {0, 2, 1, 3}),
                             {batch * chunks, 1, g.mels, length});
  Value y = unary(functions::gelu, input_embedding(c, forward(c, t.conv1, rows)));
  y = unary(functions::gelu, forward(c, t.conv2, y));
  y = unary(functions::gelu, forward(c, t.conv3, y));
  {
    Value states_first = contiguous(permute(y, {0, 3, 1, 2}));
    y = forward(c, t.conv_out, reshape(std::move(states_first), {y.size(0), y.size(3), -1}));
  }
  {
    Value table = to(slice(Value(c.b, t.positions.table), 0, 0, y.size(1)), y.dtype());
    y = add_(std::move(y), std::move(table));
  }
  const Value kept = states_of_chunks(of_chunks());
  Value places = arange(c.b, y.size(1));
  const Value valid = compare("lt.Tensor", std::move(places), unsqueeze(kept, 1));
  const Value at = squeeze(nonzero(view(valid, {-1}), states), -1);
  Value x = index_select(view(y, {-1, g.widths.hidden}), 0, at);
  x = packed_layers(c, t.layers, g.widths, std::move(x), segments);
  const Value outputs = x;  // layer_outputs, alive until the function returns
  x = forward(c, t.norm, x);
  return x;
}

}  // namespace vlmest
