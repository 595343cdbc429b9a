// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/decoder/deepseek_attention.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/grouped_moe.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>

namespace vlmest {

/// The decoders of DeepSeek-V3, Kimi-K2 and Moonlight (transformers models/deepseek_v3) and of Mistral Small 4
/// (models/mistral4): multi-head latent attention, and experts beside shared ones in all layers but the first few.
/// Defaults: DeepseekV3Config.
struct DeepseekConfig {
  std::int64_t vocab = 129280;
  std::int64_t intermediate = 18432;  ///< of the dense layers
  std::int64_t layers = 61;
  LatentHeads attention;
  GroupedMoeConfig moe;
  std::int64_t dense_layers = 3;  ///< first_k_dense_replace
  Activation activation = Activation::silu;

  bool sparse(std::int64_t layer) const { return layer >= dense_layers; }
};

struct DeepseekLayer {
  ScopeId scope = 0;
  DeepseekAttention attention;
  bool sparse = false;
  GroupedMoe moe;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
};

struct DeepseekDecoder {
  const DeepseekConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<DeepseekLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t width(const DeepseekConfig& g) { return g.attention.hidden; }

/// In the order of DeepseekV3DecoderLayer.__init__.
inline DeepseekLayer make_deepseek_layer(Context& c, const DeepseekConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  DeepseekLayer l{.scope = m.scope};
  l.attention = make_deepseek_attention(c, g.attention);
  l.sparse = g.sparse(index);
  if (l.sparse)
    l.moe = make_grouped_moe(c, g.moe);
  else
    l.mlp = make_gated_mlp(c, "mlp", width(g), g.intermediate, false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", width(g));
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", width(g));
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of DeepseekV3Model.__init__.
inline DeepseekDecoder make_decoder(Context& c, const DeepseekConfig& g) {
  DeepseekDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, width(g));
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_deepseek_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", width(g));
  d.rope = make_rope(c, "rotary_emb", g.attention.rope_dim);
  return d;
}

inline Cache make_cache(const DeepseekConfig& g) { return empty_cache(g.layers); }

/// DeepseekV3DecoderLayer.forward.
inline Value forward(Context& c, const DeepseekConfig& g, const DeepseekLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g.attention, l.attention, x, mask, positions, cache); },
      l.post_attention_norm, [&](const Value& x) { return l.sparse ? forward(c, l.moe, x) : forward(c, l.mlp, x); });
}

/// DeepseekV3Model.forward and Mistral4Model.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const DeepseekDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const DeepseekConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  CosSin positions = forward(c, d.rope, position_ids);
  positions.ids = position_ids;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const DeepseekLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({l.sparse ? 1 : 0, l.scope, l.attention.first_parameter()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
