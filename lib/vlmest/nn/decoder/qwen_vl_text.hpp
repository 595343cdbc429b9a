// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/mrope.hpp>

namespace vlmest {

/// The text model of Qwen2-VL and Qwen2.5-VL: Qwen2's layers (q, k, v biases) under positions of three axes.
/// transformers models/qwen2_vl and models/qwen2_5_vl, class …TextModel.
struct QwenVlTextConfig {
  LlamaConfig layers{.vocab = 152064,
                     .hidden = 8192,
                     .intermediate = 29568,
                     .layers = 80,
                     .heads = 64,
                     .kv_heads = 8,
                     .head_dim = 128,
                     .qkv_bias = true};
  std::vector<std::int64_t> sections{16, 24, 24};  ///< frequencies that follow time, rows, columns, time, …
};

struct QwenVlText {
  const QwenVlTextConfig* config = nullptr;
  ScopeId scope = 0, embed_scope = 0;
  TensorId embed_tokens = none;
  std::vector<LlamaLayer> layers;
  RmsNorm norm;
  Mrope rope;
};

inline std::int64_t vocabulary(const QwenVlTextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const QwenVlTextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const QwenVlTextConfig& g) { return make_cache(g.layers); }

/// In the order of Qwen2VLTextModel.__init__.
inline QwenVlText make_decoder(Context& c, const QwenVlTextConfig& g) {
  QwenVlText d{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "embed_tokens");
    d.embed_scope = e.scope;
    d.embed_tokens = parameter(c, "weight", {g.layers.vocab, g.layers.hidden});
  }
  d.layers.reserve(static_cast<std::size_t>(g.layers.layers));
  for (std::int64_t i = 0; i < g.layers.layers; ++i)
    d.layers.push_back(make_llama_layer(c, g.layers, static_cast<std::int32_t>(i)));
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_mrope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

inline Value embed(Context& c, const QwenVlText& d, const Value& input_ids) {
  InScope in(c.b, d.embed_scope);
  return eager::embedding(Value(c.b, d.embed_tokens), input_ids);
}

/// Section i of the frequencies comes from axis i mod 3: freq[3, B, S, n] -> [B, S, n].
inline Value interleave_axes(Value arg, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  Value freq = std::move(arg);
  std::vector<Value> parts = split(freq, sections, -1);
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = select(std::move(parts[i]), 0, static_cast<std::int64_t>(i % 3));
  return cat(parts, -1);
}
/// modeling_qwen2_vl.py, Qwen2VLRotaryEmbedding.recomposition_frequencies: the same twice in a row, [B, S, 2 n].
inline Value deal_sections(Value freq, const std::vector<std::int64_t>& sections) {
  freq = interleave_axes(std::move(freq), sections);
  return eager::cat(freq, freq, -1);
}

/// modeling_qwen2_vl.py, Qwen2VLRotaryEmbedding.forward: positions[3, B, S] -> cos, sin[B, S, head_dim]; `deal` lays the
/// frequencies of the axes out over the channels.
template <class Deal>
CosSin forward(Context& c, const Mrope& r, const Value& positions, Deal deal) {
  using namespace eager;
  InScope in(c.b, r.scope);
  Value inv = unsqueeze(unsqueeze(unsqueeze(Value(c.b, r.inv_freq), 0), 0), 3);
  inv = expand(std::move(inv), {3, positions.size(1), -1, 1});
  Value at = to(unsqueeze(positions, 2), DType::fp32);
  Value freqs = transpose(matmul(inv, at), 2, 3);
  Value cosine = mul_scalar(eager::cos(freqs));
  Value sine = mul_scalar(eager::sin(freqs));
  sine = deal(sine);
  cosine = deal(cosine);
  CosSin out;
  out.cos = to(cosine, c.dtype());
  out.sin = to(sine, c.dtype());
  return out;
}

/// modeling_qwen2_vl.py, Qwen2VLTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on
/// from the cache) -> normed hidden states.
inline Value forward(Context& c, const QwenVlText& d, Value arg, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  using namespace eager;
  const LlamaConfig& g = d.config->layers;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  if (!position_ids) position_ids = expand(view(add_scalar(arange(c.b, tokens)), {1, 1, tokens}), {3, batch, tokens});
  MaskShape shape{.batch = batch, .q_len = tokens, .kv_len = tokens + cache.layers.front().seen};
  Value full = causal_mask(c, shape, attention_mask), sliding;
  if (g.window && std::count(g.sliding.begin(), g.sliding.end(), true) > 0) {
    shape.window = g.window;
    sliding = causal_mask(c, shape, attention_mask);
  }
  Value x = embeds;
  const auto deal = [&](Value f) { return deal_sections(std::move(f), d.config->sections); };
  CosSin positions = forward(c, d.rope, position_ids, deal);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    CacheLayer& entry = cache.layers[i];
    x = forward(c, g, d.layers[i], x, entry.window ? sliding : full, positions, entry);
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
