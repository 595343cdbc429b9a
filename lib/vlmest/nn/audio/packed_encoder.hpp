// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/audio/clip_chunks.hpp>
#include <vlmest/nn/audio/whisper_layer.hpp>
#include <vlmest/nn/vision/packed_attention.hpp>

/// Whisper's layers over the states of all clips in one row, each clip cut into segments that see themselves alone
/// (modeling_qwen2_5_omni.py, Qwen2_5OmniAudioEncoderLayer; modeling_qwen3_omni_moe.py, Qwen3OmniMoeAudioEncoderLayer).
namespace vlmest {

/// Qwen2_5OmniAudioAttention.forward: x[states, hidden] -> the same.
inline Value packed_clip_attention(Context& c, const WhisperLayer& l, const WhisperWidths& g, const Value& x,
                                   const Segments& segments) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t rows = x.size(0);
  const auto project = [&](const Linear& p) { return reshape(forward(c, p, x), {rows, g.heads, -1}); };
  Value q = project(l.attention.q);
  Value k = project(l.attention.k);
  Value v = project(l.attention.v);
  SegmentedAttention held;  // variables of the function: alive until it returns
  Value out = attend_segments(c, q, k, v, segments, held);
  out = forward(c, l.attention.out, out);
  return out;
}

/// Qwen2_5OmniAudioEncoderLayer.forward.
inline Value forward(Context& c, const WhisperLayer& l, const WhisperWidths& g, Value arg, const Segments& segments) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.norm1, x);
  x = packed_clip_attention(c, l, g, x, segments);
  x = add(residual, x);
  residual.reset();
  return whisper_second_half(c, l, g, std::move(x), false);
}

inline Value packed_layers(Context& c, const std::vector<WhisperLayer>& layers, const WhisperWidths& g, Value x,
                           const Segments& segments) {
  LayerRepeater repeat(c.b);
  for (const WhisperLayer& l : layers)
    x = repeat({0, l.scope, first_parameter(l)}, x, {}, [&](const Value& h) { return forward(c, l, g, h, segments); });
  return x;
}

/// SinusoidsPositionEmbedding: fp32[rows, width] that no file holds, in the current scope.
struct Sinusoids {
  TensorId table = none;
};
inline Sinusoids make_sinusoids(Context& c, std::int64_t rows, std::int64_t width) {
  Module m(c, "positional_embedding");
  return {buffer(c, "positional_embedding", {rows, width}, DType::fp32)};
}
/// x[chunks, states, hidden] + the first rows of the table, in the type of x.
inline Value add_sinusoids(Context& c, const Sinusoids& s, const Value& x) {
  using namespace eager;
  Value rows = to(unsqueeze(slice(Value(c.b, s.table), 0, 0, x.size(1)), 0), x.dtype());
  return add(x, std::move(rows));
}

}  // namespace vlmest
