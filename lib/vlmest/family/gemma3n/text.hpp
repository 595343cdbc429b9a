// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/family/gemma3n/text_layer.hpp>
#include <vlmest/nn/decoder/gemma4_text.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma3n.py, Gemma3nTextModel.
struct Gemma3nText {
  const Gemma3nTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens, embed_per_layer;
  TensorId embed_scale = none, per_layer_scale = none, projection_scale = none, input_scale = none;
  std::vector<Gemma3nLayer> layers;
  RmsNorm norm, per_layer_norm;
  Rope full_rope, sliding_rope;
  Linear per_layer_projection;
  std::vector<Linear> spread, gather;  ///< altup_projections, altup_unembed_projections
};

/// In the order of Gemma3nTextModel.__init__.
inline Gemma3nText make_decoder(Context& c, const Gemma3nTextConfig& g) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Gemma3nText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_scaled_embedding(c, "embed_tokens", g.vocab, g.hidden, d.embed_scale);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_gemma3n_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, kind);
  {
    Module m(c, "rotary_emb");
    const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
    if (slides < g.layers) d.full_rope = make_rope_of_type(c, false, g.head_dim);
    if (slides > 0) d.sliding_rope = make_rope_of_type(c, true, g.head_dim);
  }
  const std::int64_t packed = checked_mul(g.layers, g.per_layer);
  d.embed_per_layer = make_scaled_embedding(c, "embed_tokens_per_layer", g.per_layer_vocab, packed, d.per_layer_scale);
  d.per_layer_projection = make_linear(c, "per_layer_model_projection", g.hidden, packed, false);
  d.per_layer_norm = make_rms_norm(c, "per_layer_projection_norm", g.per_layer, kind);
  const auto one_a_copy = [&](const char* name) {
    return make_layers(g.copies - 1,
                       [&](std::int32_t i) { return make_linear(c, name, g.hidden, g.hidden, false, i); });
  };
  d.spread = one_a_copy("altup_projections");
  d.gather = one_a_copy("altup_unembed_projections");
  d.projection_scale = buffer(c, "per_layer_projection_scale", Shape{}, c.dtype());
  d.input_scale = buffer(c, "per_layer_input_scale", Shape{}, c.dtype());
  return d;
}

/// Layers that share keys and values have no entry (cache_utils.py, get_layer_types_and_kwargs).
inline Cache make_cache(const Gemma3nTextConfig& g) {
  Cache r;
  for (std::int64_t i = 0; i < g.first_shared(); ++i) {
    r.layers.emplace_back();
    if (g.slides(i)) r.layers.back().window = g.window;
  }
  return r;
}

inline Value embed(Context& c, const Gemma3nText& d, const Value& input_ids) {
  return input_embedding(c, scaled_rows(c, d.embed_tokens, d.embed_scale, input_ids));
}

/// get_per_layer_inputs: what each layer gets of each token's identity, [B, S, layers, width].
inline Value per_layer_inputs(Context& c, const Gemma3nText& d, const Value& input_ids) {
  const Gemma3nTextConfig& g = *d.config;
  Value rows = scaled_rows(c, d.embed_per_layer, d.per_layer_scale, input_ids);
  return eager::reshape(std::move(rows), {input_ids.size(0), input_ids.size(1), g.layers, g.per_layer});
}

/// project_per_layer_inputs: and with it of the token's embedding.
inline Value project_per_layer_inputs(Context& c, const Gemma3nText& d, const Value& embeds, Value arg) {
  const Value of_tokens = std::move(arg);
  using namespace eager;
  Value x = forward(c, d.per_layer_projection, embeds);
  x = mul_(std::move(x), Value(c.b, d.projection_scale));
  x = reshape(x, of_tokens.shape());
  x = forward(c, d.per_layer_norm, x);
  return mul(add(x, of_tokens), Value(c.b, d.input_scale));
}

/// torch.mean(x ** 2, dim=-1, keepdim=True).
inline Value mean_square(const Value& x) { return eager::mean(eager::pow_scalar(x), -1, true); }

/// A copy of the hidden states as Gemma3nTextModel.forward makes it, in the variables that it keeps.
struct ScaledCopy {
  Value projected, scaled, magnitude;
};
/// Projected, then of another one's magnitude.
inline void scale_copy(Context& c, const Linear& projection, const Value& x, const Value& target, ScaledCopy& r) {
  using namespace eager;
  r.projected = forward(c, projection, x);
  r.scaled = r.projected;
  r.magnitude = mean_square(r.scaled);
  {
    Value least = from_host(c.b, Shape{}, DType::fp32, "_to_copy");
    Value larger = maximum(r.magnitude, std::move(least));
    r.magnitude = square_root(std::move(larger));
  }
  Value product = mul(r.scaled, target);
  r.scaled = div(std::move(product), r.magnitude);
}

/// Gemma3nTextModel.forward: embeddings[B, S, hidden], what the layers get of the tokens beside them, the attention
/// mask -> normed hidden states. Which type of layer gets its rotary embedding first is the order of a Python set of
/// strings, which differs from process to process: here the full layers do, whose costs are the sliding ones'.
inline Value forward(Context& c, const Gemma3nText& d, const Value& embeds, Value of_tokens,
                     const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const Gemma3nTextConfig& g = *d.config;
  InScope in(c.b, d.scope);
  const Value per_layer = project_per_layer_inputs(c, d, embeds, std::move(of_tokens));
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  LayerMasks masks;
  masks.full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  masks.sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);

  Value target = pow_scalar(mean_square(embeds));
  ScaledCopy made;
  std::vector<Value> copies{embeds};
  for (const Linear& projection : d.spread) {
    scale_copy(c, projection, embeds, target, made);
    copies.push_back(made.scaled);
  }
  const Value projected = made.projected;  // a variable that the copies at the end have a name of their own for
  Value states;
  {
    std::vector<Value> listed = copies;
    states = stack(listed, 0);
  }
  CosSin full, sliding;
  if (d.full_rope.inv_freq != none) full = forward(c, d.full_rope, position_ids);
  if (d.sliding_rope.inv_freq != none) sliding = forward(c, d.sliding_rope, position_ids);
  LentKeys lent;
  CacheLayer unused;
  DecoderStack run(c, position_ids);
  Value own;
  for (std::int64_t i = 0; i < g.layers; ++i) {
    const Gemma3nLayer& l = d.layers[static_cast<std::size_t>(i)];
    const Gemma3nAttention& a = l.attention;
    // What hands gradients to its own inputs is no copy of another layer.
    const std::int64_t kind = c.b.grad_enabled() ? i : g.first_like(i);
    CacheLayer& entry = a.shares ? unused : cache.layers[static_cast<std::size_t>(i)];
    own = select(per_layer, 2, i);
    LayerRepeater::Layer place{static_cast<int>(kind), l.scope, a.q.weight};
    place.lends = a.lends && g.shared > 0;
    states = run(
        place, states, entry,
        [&, again = false](const Value& h) mutable {
          LentKeys apart = again ? lent : LentKeys{};  // a checkpointed layer's second run changes nothing of the first
          LentKeys& keys = again ? apart : lent;
          again = true;
          return forward(c, g, l, h, own, masks.of(a.slides), a.slides ? sliding : full, entry, keys);
        },
        own);
  }
  target = pow_scalar(mean_square(select(states, 0, 0)));
  copies.assign(1, select(states, 0, 0));
  for (std::size_t i = 0; i < d.gather.size(); ++i) {
    const Value copy = select(states, 0, static_cast<std::int64_t>(i) + 1);
    scale_copy(c, d.gather[i], copy, target, made);
    copies.push_back(made.scaled);
  }
  {
    std::vector<Value> listed = copies;
    states = stack(listed, 0);
  }
  states = mean(states, 0, false);
  return forward(c, d.norm, states);
}

/// Throws Error for a runtime whose kernels take no keys that layers share.
inline void check_shared_keys(const Context& c) {
  if (!c.stack().attends_to_wide_shared_heads)
    throw Error("plan.runtime", "kernels that fuse Gemma 3n's attention over shared keys are not modelled",
                "leave plan.runtime out");
}

}  // namespace vlmest
