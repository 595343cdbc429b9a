// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/moe_layer.hpp>
#include <vlmest/nn/mrope.hpp>

namespace vlmest {

/// The text model of Qwen3-VL and its mixture-of-experts variant: Qwen3's layers (per-head norms of q and k) under
/// positions of three axes, with visual features added behind the first layers. transformers models/qwen3_vl and
/// models/qwen3_vl_moe, class …TextModel.
struct Qwen3VlTextConfig {
  LlamaConfig layers{.vocab = 151936,
                     .hidden = 4096,
                     .intermediate = 22016,
                     .layers = 32,
                     .heads = 32,
                     .kv_heads = 32,
                     .head_dim = 128,
                     .qk_norm = true};
  std::vector<std::int64_t> sections{24, 20, 20};  ///< frequencies of time, rows and columns, dealt in turn
  MoeConfig moe;
  std::vector<bool> sparse;  ///< per layer: experts instead of the MLP; empty: none
};

struct Qwen3VlText {
  const Qwen3VlTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<MoeLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const Qwen3VlTextConfig& g) { return g.layers.vocab; }
inline std::int64_t width(const Qwen3VlTextConfig& g) { return g.layers.hidden; }
inline Cache make_cache(const Qwen3VlTextConfig& g) { return make_cache(g.layers); }

/// In the order of Qwen3VLTextModel.__init__.
inline Qwen3VlText make_decoder(Context& c, const Qwen3VlTextConfig& g) {
  Qwen3VlText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers =
      make_layers(g.layers.layers, [&](std::int32_t i) { return make_moe_layer(c, g.layers, g.moe, g.sparse, i); });
  d.norm = make_rms_norm(c, "norm", g.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  return d;
}

/// modeling_qwen3_vl.py, Qwen3VLTextRotaryEmbedding.recomposition_frequencies: every third frequency of the rows and of
/// the columns is written over time's, in place; the result twice in a row. freq[3, B, S, n] -> [B, S, 2 n].
inline Value interleave_sections(const Value& freq, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  Value mixed = select(freq, 0, 0);
  for (std::int64_t axis = 1; axis < 3; ++axis) {
    const std::int64_t end = checked_mul(sections[static_cast<std::size_t>(axis)], 3);
    Value source = slice(select(freq, 0, axis), -1, axis, end, 3);
    copy_(slice(mixed, -1, axis, end, 3), std::move(source));
  }
  return cat(mixed, mixed, -1);
}

/// Visual features for the first layers, and where they go.
struct Deepstack {
  Value mask;                   ///< bool[B, S]: true where image features stand
  std::int64_t selected = 0;    ///< true entries
  std::vector<Value> features;  ///< [selected, hidden] for layer 0, 1, …
};

/// All of them, or what stands in this rank's places of divided sequences, as the hook before the language model takes
/// it: wherever the images are, a rank is taken to have its share.
inline Deepstack own_part(Context& c, const LanguageInputs& inputs, const Deepstack& d) {
  using namespace eager;
  if (!inputs.divided() || d.features.empty()) return d;
  const DividedSequence& s = *c.sequence;
  const Shape whole = d.mask.shape();
  Deepstack r{.mask = index_select(d.mask, 1, s.places), .selected = (d.selected + s.at.ranks - 1) / s.at.ranks};
  Value rows;
  {
    Value order = sub_scalar(cumsum(view(d.mask, {-1}), DType::int64));
    Value own = index_select(view(std::move(order), whole), 1, s.places);
    rows = masked_index(std::move(own), r.mask, r.selected);
  }
  for (const Value& f : d.features) r.features.push_back(index_select(f, 0, rows));
  return r;
}

/// modeling_qwen3_vl.py, Qwen3VLTextModel._deepstack_process.
inline Value add_features(const Value& hidden, const Deepstack& d, const Value& given) {
  using namespace eager;
  const Value features = to(given, hidden.dtype());
  Value x = clone(hidden);
  Value selected = add(masked_index(x, d.mask, d.selected), features);
  masked_index_put_(x, d.mask, selected, d.selected);
  return x;
}

/// modeling_qwen3_vl.py, Qwen3VLTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on
/// from the cache) -> normed hidden states. A layer's own output stays until the next layer has run, beside the one
/// that features were added to.
inline Value forward(Context& c, const Qwen3VlText& d, Value embeds, Value position_ids, const Value& attention_mask,
                     const Deepstack& deepstack, Cache& cache) {
  using namespace eager;
  const LlamaConfig& g = d.config->layers;
  LanguageInputs own = own_part(c, d.scope, std::move(embeds), std::move(position_ids), attention_mask);
  const Deepstack visual = own_part(c, own, deepstack);
  InScope in(c.b, d.scope);
  const std::int64_t batch = own.embeds.size(0), tokens = own.embeds.size(1);
  if (!own.positions) own.positions = text_positions_3d(c, batch, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), own.mask);
  Value x = own.embeds, output;
  const auto deal = [&](const Value& f) { return interleave_sections(f, d.config->sections); };
  const CosSin positions = mrope(c, d.rope, own.positions, deal);
  DecoderStack stack(c, {});
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    output = forward(c, stack, g, d.layers[i], x, mask, positions, cache.layers[i]);
    x = output;
    if (i < visual.features.size()) x = add_features(x, visual, visual.features[i]);
  }
  return forward(c, d.norm, x);
}
/// Without visual features.
inline Value forward(Context& c, const Qwen3VlText& d, Value arg, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  return forward(c, d, std::move(arg), std::move(position_ids), attention_mask, {}, cache);
}

}  // namespace vlmest
