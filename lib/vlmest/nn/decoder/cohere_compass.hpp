// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/nn/decoder/cohere.hpp>
#include <vlmest/nn/decoder/qwen3_vl_text.hpp>

namespace vlmest {

/// The text model of Cohere's Compass (transformers models/cohere_compass, CohereCompassTextModel): Cohere2's layers
/// under positions of three axes, whose frequencies each type of layer has of its own or not at all; visual features
/// are added behind the first layers, as in Qwen3-VL. Defaults: CohereCompassTextConfig.
struct CompassTextConfig {
  CohereConfig layers;
  /// Frequencies of a head that follow rows, columns and time; empty: that type of layer has no positions.
  std::vector<std::int64_t> full_sections{22, 22, 20}, sliding_sections{22, 22, 20};
};

struct CompassText {
  const CompassTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<CohereLayer> layers;
  CohereNorm norm;
  Rope full_rope, sliding_rope;
};

inline std::int64_t vocabulary(const CompassTextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const CompassTextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const CompassTextConfig& g) { return make_cache(g.layers); }

inline bool any_layer(const CompassTextConfig& g, bool slides) {
  return std::find(g.layers.sliding.begin(), g.layers.sliding.end(), slides) != g.layers.sliding.end();
}

/// In the order of CohereCompassTextModel.__init__. Which type's frequencies are made first is the order of a Python
/// set, thus open; both are of one size.
inline CompassText make_decoder(Context& c, const CompassTextConfig& g) {
  CompassText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_cohere_layer(c, g.layers, i); });
  d.norm = make_cohere_norm(c, "norm", {g.layers.hidden});
  Module m(c, "rotary_emb");
  d.full_rope = d.sliding_rope = {.scope = m.scope, .dim = g.layers.head_dim};
  const Shape half{g.layers.head_dim / 2};
  if (any_layer(g, false) && !g.full_sections.empty()) {
    d.full_rope.inv_freq = buffer(c, "full_attention_inv_freq", half, DType::fp32);
    buffer(c, "full_attention_original_inv_freq", half, DType::fp32);
  }
  if (any_layer(g, true) && !g.sliding_sections.empty()) {
    d.sliding_rope.inv_freq = buffer(c, "sliding_attention_inv_freq", half, DType::fp32);
    buffer(c, "sliding_attention_original_inv_freq", half, DType::fp32);
  }
  return d;
}

/// modeling_cohere_compass.py, CohereCompassRotaryEmbedding.recomposition_frequencies: freq[3, B, S, n] -> [B, S, 2 n],
/// rows' frequencies, columns' and time's one behind the other, twice in a row.
inline Value join_sections(const Value& freq, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  const std::vector<Value> parts = split(freq, sections, -1);
  const Value rows = select(parts[0], 0, 1), cols = select(parts[1], 0, 2), time = select(parts[2], 0, 0);
  const Value places = cat(rows, cols, -1);
  const Value all = cat(places, time, -1);
  return cat(all, all, -1);
}

/// modeling_cohere_compass.py, CohereCompassAttention.forward.
inline Attended compass_attention(Context& c, const CohereConfig& g, const CohereLayer& l, const Value& x,
                                  const Value& mask, const CosSin& positions, CacheLayer& cache) {
  InScope in(c.b, l.attention.scope);
  Qkv y = project_heads(c, l.attention, x, g.head_dim);
  if (positions.cos) apply_rope(c, y.q, y.k, positions);
  update(c, cache, y.k, y.v);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .causal = true});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_cohere_compass.py, CohereCompassDecoderLayer.forward.
inline Value compass_layer(Context& c, const CohereConfig& g, const CohereLayer& l, Value x, const Value& mask,
                           const CosSin& positions, CacheLayer& cache) {
  return parallel_layer(c, l, std::move(x), [&](const Value& normed) {
    return compass_attention(c, g, l, normed, mask, positions, cache);
  });
}

/// modeling_cohere_compass.py, CohereCompassTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none:
/// counted on from the cache) -> normed hidden states. It makes both masks whatever its layers are.
inline Value forward(Context& c, const CompassText& d, Value embeds, Value position_ids, const Value& attention_mask,
                     const Deepstack& deepstack, Cache& cache) {
  const CohereConfig& g = d.config->layers;
  LanguageInputs own = own_part(c, d.scope, std::move(embeds), std::move(position_ids), attention_mask);
  const Deepstack visual = own_part(c, own, deepstack);
  InScope in(c.b, d.scope);
  const std::int64_t batch = own.embeds.size(0), tokens = own.embeds.size(1);
  if (!own.positions) own.positions = text_positions_3d(c, batch, tokens);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), own.mask);
  const Value sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), own.mask);
  Value x = own.embeds;
  CosSin at_full, at_sliding;
  const auto turn = [&](bool slides) {
    const Rope& r = slides ? d.sliding_rope : d.full_rope;
    const auto& sections = slides ? d.config->sliding_sections : d.config->full_sections;
    if (r.inv_freq == none) return;
    (slides ? at_sliding : at_full) =
        mrope(c, r, own.positions, [&](const Value& f) { return join_sections(f, sections); });
  };
  const bool first = g.sliding.front();  // a dict in the order in which types of layers appear
  turn(first);
  turn(!first);
  DecoderStack stack(c, {});
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const CohereLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    const bool slides = g.sliding[i];
    x = stack({slides ? 1 : 0, l.scope, l.attention.first()}, x, entry, [&](const Value& h) {
      return compass_layer(c, g, l, h, slides ? sliding : full, slides ? at_sliding : at_full, entry);
    });
    if (i < visual.features.size()) x = add_features(x, visual, visual.features[i]);
  }
  return forward(c, d.norm, x);
}
/// Without visual features.
inline Value forward(Context& c, const CompassText& d, Value arg, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  return forward(c, d, std::move(arg), std::move(position_ids), attention_mask, {}, cache);
}

}  // namespace vlmest
