// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/decoder/moe_layer.hpp>

namespace vlmest {

/// Qwen2-MoE (q, k, v biases, an expert that sees every token) and Qwen3-MoE (per-head norms of q and k): Llama's
/// layers with experts in some of them. transformers models/qwen2_moe, qwen3_moe.
struct QwenMoeConfig {
  LlamaConfig layers;
  MoeConfig moe;
  std::vector<bool> sparse;  ///< per layer: experts instead of the MLP; empty: none
  /// Qwen2-MoE: the mask of sliding layers is made though no layer slides; the window is 0 then
  /// (configuration_qwen2_moe.py, __post_init__).
  bool spare_mask = false;
};

struct QwenMoeDecoder {
  const QwenMoeConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<MoeLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const QwenMoeConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const QwenMoeConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const QwenMoeConfig& g) { return make_cache(g.layers); }

/// In the order of Qwen3MoeModel.__init__.
inline QwenMoeDecoder make_decoder(Context& c, const QwenMoeConfig& g) {
  QwenMoeDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers =
      make_layers(g.layers.layers, [&](std::int32_t i) { return make_moe_layer(c, g.layers, g.moe, g.sparse, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

/// modeling_qwen3_moe.py, Qwen3MoeModel.forward, and modeling_qwen2_moe.py, Qwen2MoeModel.forward: embeddings[B, S,
/// hidden] -> normed hidden states. One mask for all layers: they slide together or not at all.
inline Value forward(Context& c, const QwenMoeDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const LlamaConfig& g = d.config->layers;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  Value spare;  // in a dict of the function: alive until it returns
  if (d.config->spare_mask) spare = causal_mask(c, mask_shape(cache, batch, tokens, 0), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i)
    x = forward(c, stack, g, d.layers[i], x, mask, positions, cache.layers[i]);
  return forward(c, d.norm, x);
}

}  // namespace vlmest
