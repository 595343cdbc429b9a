// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/divided_sequence.hpp>
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
                     .qkv_bias = true,
                     .project_first = true};
  std::vector<std::int64_t> sections{16, 24, 24};  ///< frequencies that follow time, rows, columns, time, …
};

struct QwenVlText {
  const QwenVlTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<LlamaLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const QwenVlTextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const QwenVlTextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const QwenVlTextConfig& g) { return make_cache(g.layers); }

/// In the order of Qwen2VLTextModel.__init__.
inline QwenVlText make_decoder(Context& c, const QwenVlTextConfig& g) {
  QwenVlText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_llama_layer(c, g.layers, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

/// modeling_qwen2_vl.py, Qwen2VLRotaryEmbedding.recomposition_frequencies: freq[3, B, S, n] -> [B, S, 2 n], the
/// interleaved axes twice in a row.
inline Value deal_sections(Value freq, const std::vector<std::int64_t>& sections) {
  freq = interleave_axes(std::move(freq), sections);
  return eager::cat(freq, freq, -1);
}

/// modeling_qwen2_vl.py, Qwen2VLTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on
/// from the cache) -> normed hidden states.
inline Value forward(Context& c, const QwenVlText& d, Value embeds, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  using namespace eager;
  const LlamaConfig& g = d.config->layers;
  LanguageInputs own = own_part(c, d.scope, std::move(embeds), std::move(position_ids), attention_mask);
  InScope in(c.b, d.scope);
  const std::int64_t batch = own.embeds.size(0), tokens = own.embeds.size(1);
  if (!own.positions) own.positions = text_positions_3d(c, batch, tokens);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), own.mask);
  Value sliding;
  if (g.window && std::count(g.sliding.begin(), g.sliding.end(), true) > 0)
    sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), own.mask);
  const auto deal = [&](Value f) { return deal_sections(std::move(f), d.config->sections); };
  const CosSin positions = mrope(c, d.rope, own.positions, deal);
  const Value x = llama_layers(c, g, d.layers, own.embeds, full, sliding, {}, positions, cache);
  return forward(c, d.norm, x);
}

}  // namespace vlmest
