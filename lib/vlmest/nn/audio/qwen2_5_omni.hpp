// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/nn/audio/conv.hpp>
#include <vlmest/nn/audio/packed_encoder.hpp>
#include <vlmest/nn/embedding.hpp>

namespace vlmest {

/// Qwen2.5-Omni's audio encoder (transformers 5.17 models/qwen2_5_omni, Qwen2_5OmniAudioEncoder): Whisper's over chunks
/// of 2 seconds that see themselves alone, pairs of states averaged, a projection to the language model's width.
struct Qwen2_5OmniAudio {
  WhisperWidths widths;
  std::int64_t mels = 128;
  std::int64_t layers = 32;
  std::int64_t positions = 1500;  ///< max_source_positions
  std::int64_t window = 100;      ///< n_window: half the frames of a chunk
  std::int64_t out = 3584;        ///< output_dim
};

struct Qwen2_5OmniAudioTower {
  const Qwen2_5OmniAudio* config = nullptr;
  ScopeId scope = 0;
  Conv1d conv1, conv2;
  Sinusoids positions;
  std::vector<WhisperLayer> layers;
  LayerNorm norm;
  Linear proj;
};

/// In the order of Qwen2_5OmniAudioEncoder.__init__, in the current scope.
inline Qwen2_5OmniAudioTower make_tower(Context& c, const Qwen2_5OmniAudio& g) {
  Qwen2_5OmniAudioTower t{.config = &g, .scope = c.b.scope()};
  t.conv1 = make_conv1d(c, "conv1", g.mels, g.widths.hidden, 3, 1);
  t.conv2 = make_conv1d(c, "conv2", g.widths.hidden, g.widths.hidden, 3, 2);
  t.positions = make_sinusoids(c, g.positions, g.widths.hidden);
  make_embedding(c, "audio_bos_eos_token", 2, g.out);  // nothing reads it
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_whisper_layer(c, g.widths, i); });
  t.norm = make_layer_norm(c, "ln_post", g.widths.hidden);
  t.proj = make_linear(c, "proj", g.widths.hidden, g.out, true);
  return t;
}

/// get_pool_indices: the first state of each pair, int64[tokens].
inline Value pool_indices(Context& c, const Value& lengths, std::span<const AudioLayout> clips) {
  using namespace eager;
  std::int64_t tokens = 0;
  for (const AudioLayout& l : clips) tokens = checked_add(tokens, l.llm_tokens);
  const std::int64_t n = lengths.size(0);
  const Value states = halved(lengths), pooled = halved(states);
  const auto begins = [&](const Value& of) { return behind_one(cumsum(slice(of, 0, 0, n - 1), DType::int64)); };
  const Value offsets = begins(states);
  const Value firsts = repeated(offsets, pooled, tokens);
  Value local;
  {
    const Value total = sum_all(pooled);
    item(total);
    local = arange(c.b, tokens);
  }
  {
    Value before = begins(pooled);
    before = repeated(before, pooled, tokens);
    local = pointwise_("sub_.Tensor", std::move(local), std::move(before));
  }
  Value twice = mul_scalar(local);
  return add(firsts, std::move(twice));
}

/// Qwen2_5OmniAudioEncoder.forward: features[mels, frames of all clips], lengths int64[clips] -> [tokens, out].
inline Value forward(Context& c, const Qwen2_5OmniAudioTower& t, const Value& features, const Value& lengths,
                     std::span<const AudioLayout> clips) {
  using namespace eager;
  const Qwen2_5OmniAudio& g = *t.config;
  InScope in(c.b, t.scope);
  const ClipChunks chunks = chunk_and_pad(features, lengths, clips, g.window);
  std::int64_t states = 0, longest = 0;
  Segments segments;
  for (const std::int64_t frames : chunks.frames) {
    segments.lengths.push_back(audio::after_convolutions(frames));
    states = checked_add(states, segments.lengths.back());
    longest = std::max(longest, segments.lengths.back());
  }
  const Value valid = [&] {
    const Value after = halved(chunks.lengths);
    return valid_indices(after, longest, states);
  }();
  const Value pairs = pool_indices(c, lengths, clips);
  {
    const Value after = halved(chunks.lengths);
    segments.cu_seqlens = to(behind_one(cumsum(after, DType::int64)), DType::int32);
  }
  check_longest(c, segments);
  const Value mask = [&] {
    Value places = arange(c.b, chunks.features.size(2));
    return to(unsqueeze(compare("lt.Tensor", std::move(places), unsqueeze(chunks.lengths, 1)), 1), DType::int64);
  }();
  Value embeds;
  {
    Value y = unary(functions::gelu, input_embedding(c, forward(c, t.conv1, chunks.features)));
    embeds = mul(std::move(y), mask);
  }
  embeds = transpose(unary(functions::gelu, forward(c, t.conv2, embeds)), 1, 2);
  embeds = add_sinusoids(c, t.positions, embeds);
  Value x = index_select(reshape(embeds, {-1, g.widths.hidden}), 0, valid);
  x = packed_layers(c, t.layers, g.widths, std::move(x), segments);
  const Value outputs = x;  // layer_outputs, alive until the function returns
  {
    Value first = take_rows(x, pairs);
    Value next = add_scalar(pairs);
    Value second = take_rows(x, std::move(next));
    x = div_scalar(add(std::move(first), std::move(second)));
  }
  x = forward(c, t.proj, forward(c, t.norm, x));
  return x;
}

}  // namespace vlmest
