// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/short_conv.hpp>

namespace vlmest {

/// LFM2: layers of gated short convolutions, and between them layers of attention with per-head norms, all with a gated
/// MLP behind. transformers 5.17 models/lfm2, Lfm2Model.
struct Lfm2Config {
  /// Sizes of the attention layers; `intermediate` is the width that the MLPs really have.
  LlamaConfig layers{.vocab = 65536,
                     .hidden = 2560,
                     .intermediate = 8192,
                     .layers = 32,
                     .heads = 32,
                     .kv_heads = 8,
                     .head_dim = 80,
                     .qk_norm = true};
  std::vector<bool> full;  ///< per layer: attention instead of a convolution
  std::int64_t taps = 3;   ///< conv_L_cache: tokens that a convolution sees and its cache keeps
  bool conv_bias = false;
};

/// One of either kind.
struct Lfm2Layer {
  LlamaLayer parts;  ///< its attention where it has one, its MLP and norms
  bool full = false;
  ShortConv conv;
};

struct Lfm2Decoder {
  const Lfm2Config* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Lfm2Layer> layers;
  Rope rope;
  RmsNorm norm;
};

inline std::int64_t vocabulary(const Lfm2Config& g) { return g.layers.vocab; }
inline std::int64_t width(const Lfm2Config& g) { return g.layers.hidden; }
inline Cache make_cache(const Lfm2Config& g) { return make_cache(g.layers); }
inline KernelPackages kernel_packages(const Lfm2Config& g) {
  return {.causal_conv1d = std::find(g.full.begin(), g.full.end(), false) != g.full.end()};
}

/// Lfm2MLP.__init__: its silu is no module.
inline GatedMlp make_lfm2_mlp(Context& c, const LlamaConfig& g) {
  Module m(c, "feed_forward");
  GatedMlp r{.scope = m.scope, .activation_scope = m.scope};
  r.gate = make_linear(c, "w1", g.hidden, g.intermediate, false);
  r.up = make_linear(c, "w3", g.hidden, g.intermediate, false);
  r.down = make_linear(c, "w2", g.intermediate, g.hidden, false);
  return r;
}

/// In the order of Lfm2DecoderLayer.__init__ and Lfm2Attention.__init__.
inline Lfm2Layer make_lfm2_layer(Context& c, const Lfm2Config& g, std::int32_t index) {
  const LlamaConfig& s = g.layers;
  Module m(c, "layers", index);
  Lfm2Layer l{.parts = {.scope = m.scope}, .full = g.full[static_cast<std::size_t>(index)]};
  if (l.full) {
    Module a(c, "self_attn");
    ProjectionConfig p = grouped_query(s, false, false);
    p.out = "out_proj";
    l.parts.attention = make_projections(c, p);
    l.parts.q_norm = make_rms_norm(c, "q_layernorm", s.head_dim);
    l.parts.k_norm = make_rms_norm(c, "k_layernorm", s.head_dim);
  } else {
    l.conv = make_short_conv(c, "conv", s.hidden, g.taps, g.conv_bias);
  }
  l.parts.mlp = make_lfm2_mlp(c, s);
  l.parts.input_norm = make_rms_norm(c, "operator_norm", s.hidden);
  l.parts.post_attention_norm = make_rms_norm(c, "ffn_norm", s.hidden);
  return l;
}

/// In the order of Lfm2Model.__init__.
inline Lfm2Decoder make_decoder(Context& c, const Lfm2Config& g) {
  Lfm2Decoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.layers.vocab, g.layers.hidden);
  d.layers = make_layers(g.layers.layers, [&](std::int32_t i) { return make_lfm2_layer(c, g, i); });
  d.rope = make_rope(c, "rotary_emb", g.layers.head_dim);
  d.norm = make_rms_norm(c, "embedding_norm", g.layers.hidden);
  return d;
}

/// Lfm2DecoderLayer.forward. The first sum has its terms the other way round.
inline Value forward(Context& c, const Lfm2Config& g, const Lfm2Layer& l, const Value& x, const Value& mask,
                     const Value& padding, const CosSin& positions, CacheLayer& cache) {
  const auto operation = [&](const Value& h) -> Attended {
    if (l.full) return self_attention(c, g.layers, l.parts, h, mask, positions, cache);
    return {forward(c, l.conv, h, padding, cache), {}};
  };
  bool first = true;
  const auto sum = [&](const Value& residual, const Value& h) {
    const bool swapped = first;
    first = false;
    return swapped ? eager::add(h, residual) : eager::add(residual, h);
  };
  return pre_norm_layer(
      c, l.parts.scope, x, l.parts.input_norm, operation, l.parts.post_attention_norm,
      [&](const Value& h) { return forward(c, l.parts.mlp, h); }, NoStep{}, NoStep{}, sum);
}

/// Lfm2Model.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const Lfm2Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const Lfm2Config& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  const Value padding = recurrent_mask(c, attention_mask, tokens);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  stack.pass(positions.cos);  // convolutions get them too and do not read them
  stack.pass(positions.sin);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Lfm2Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    const TensorId first = l.full ? l.parts.attention.first() : l.conv.first();
    x = stack({l.full ? 1 : 0, l.parts.scope, first}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, padding, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
