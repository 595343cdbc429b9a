// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// BART (Lewis et al., arXiv:1910.13461; transformers 5.17 models/bart, BartModel): an encoder and a decoder with norms
/// behind each sum and learned positions, which share one table of embeddings. Defaults: BartConfig.
struct BartConfig {
  std::int64_t vocab = 50265;
  std::int64_t hidden = 1024;  ///< d_model
  std::int64_t encoder_layers = 12;
  std::int64_t decoder_layers = 12;
  std::int64_t encoder_intermediate = 4096;  ///< encoder_ffn_dim
  std::int64_t decoder_intermediate = 4096;
  std::int64_t encoder_heads = 16;
  std::int64_t decoder_heads = 16;
  std::int64_t positions = 1024;  ///< max_position_embeddings
  bool dropout = true;            ///< dropout is above zero
  bool attention_dropout = false;
  bool activation_dropout = false;
  Activation activation = Activation::gelu;
};

/// Of the encoder, or with a cross-attention of the decoder.
struct BartLayer {
  ScopeId scope = 0, activation_scope = 0;
  Projections self;
  LayerNorm self_norm;
  std::optional<Projections> cross;
  LayerNorm cross_norm;
  Linear fc1, fc2;
  LayerNorm final_norm;
};

struct BartStack {
  ScopeId scope = 0;
  bool decoder = false;
  std::int64_t heads = 16;
  Embedding embed_tokens, embed_positions;
  std::vector<BartLayer> layers;
  LayerNorm norm;
};

inline std::int64_t width(const BartConfig& g) { return g.hidden; }
inline std::int64_t vocabulary(const BartConfig& g) { return g.vocab; }

/// Entries of the decoder: its own keys and values, which grow, and behind them those of the encoder's states.
inline Cache make_cache(const BartConfig& g) {
  Cache r = empty_cache(checked_mul(g.decoder_layers, 2));
  for (std::size_t i = r.layers.size() / 2; i < r.layers.size(); ++i) r.layers[i].fixed = true;
  return r;
}

/// In the order of BartAttention.__init__.
inline Projections make_bart_attention(Context& c, const BartConfig& g, const char* name) {
  Module a(c, name);
  return make_projections(
      c, {.hidden = g.hidden, .qkv_bias = true, .out_bias = true, .keys_first = true, .out = "out_proj"});
}

/// In the order of BartEncoderLayer.__init__ or BartDecoderLayer.__init__.
inline BartLayer make_bart_layer(Context& c, const BartConfig& g, std::int32_t index, bool decoder) {
  Module m(c, "layers", index);
  BartLayer l{.scope = m.scope};
  const std::int64_t inner = decoder ? g.decoder_intermediate : g.encoder_intermediate;
  l.self = make_bart_attention(c, g, "self_attn");
  l.self_norm = make_layer_norm(c, "self_attn_layer_norm", g.hidden);
  l.activation_scope = c.b.child("activation_fn");
  if (decoder) {
    l.cross = make_bart_attention(c, g, "encoder_attn");
    l.cross_norm = make_layer_norm(c, "encoder_attn_layer_norm", g.hidden);
  }
  l.fc1 = make_linear(c, "fc1", g.hidden, inner, true);
  l.fc2 = make_linear(c, "fc2", inner, g.hidden, true);
  l.final_norm = make_layer_norm(c, "final_layer_norm", g.hidden);
  return l;
}

/// In the order of BartEncoder.__init__ or BartDecoder.__init__. The table of embeddings is the model's: tying drops
/// the stack's own. That of positions has two entries ahead (BartLearnedPositionalEmbedding).
inline BartStack make_bart_stack(Context& c, const BartConfig& g, const Embedding& shared, bool decoder) {
  Module m(c, decoder ? "decoder" : "encoder");
  BartStack s{.scope = m.scope, .decoder = decoder, .heads = decoder ? g.decoder_heads : g.encoder_heads};
  {
    Module e(c, "embed_tokens");
    s.embed_tokens = {.scope = e.scope, .weight = shared.weight};
    c.b.existing("weight before tying", Role::buffer, c.dtype(), {g.vocab, g.hidden});
  }
  s.embed_positions = make_embedding(c, "embed_positions", checked_add(g.positions, 2), g.hidden);
  s.layers = make_layers(decoder ? g.decoder_layers : g.encoder_layers,
                         [&](std::int32_t i) { return make_bart_layer(c, g, i, decoder); });
  s.norm = make_layer_norm(c, "layernorm_embedding", g.hidden);
  return s;
}

/// modeling_bart.py, BartScaledWordEmbedding.forward, by one where embeddings are not scaled.
inline Value scaled_embedding(Context& c, const Embedding& e, const Value& ids) {
  InScope in(c.b, e.scope);
  Value rows = eager::embedding(Value(c.b, e.weight), ids);
  return eager::mul_scalar(std::move(rows));
}

/// What an attention sees beside its input: the encoder's states (null: its own), the cache entry (null: none).
struct BartSight {
  const Value* states = nullptr;
  Value mask;
  CacheLayer* cache = nullptr;
};

/// modeling_bart.py, BartAttention.forward. Keys and values of the encoder's states are made once and stay in the
/// cache. Eager attention has its softmax in the activations' type.
inline Attended bart_attention(Context& c, const BartConfig& g, const Projections& p, std::int64_t heads, bool causal,
                               const Value& x, const BartSight& sight) {
  InScope in(c.b, p.scope);
  const std::int64_t head_dim = g.hidden / heads;
  const bool crosses = sight.states != nullptr;
  Value q = split_heads(forward(c, p.q, x), head_dim);
  Value k, v;
  if (crosses && sight.cache && sight.cache->keys) {
    k = sight.cache->keys;
    v = sight.cache->values;
  } else {
    const Value& from = crosses ? *sight.states : x;
    k = forward(c, p.k, from);
    v = forward(c, p.v, from);
    k = split_heads(std::move(k), head_dim);
    v = split_heads(std::move(v), head_dim);
    if (sight.cache) update(c, *sight.cache, k, v);
  }
  Attended a = stacks::attend(c, {.q = q,
                                  .k = k,
                                  .v = v,
                                  .mask = sight.mask,
                                  .causal = causal,
                                  .dropout = g.attention_dropout,
                                  .fp32_softmax = false});
  project_out(c, p.out, a);
  return a;
}

/// torch.isfinite(x).all(), asked of fp16 alone (modeling_bart.py, BartEncoderLayer.forward); isfinite is a product of
/// comparisons (aten/src/ATen/native/TensorCompare.cpp).
inline void ask_for_infinities(Context& c, const Value& x) {
  using namespace eager;
  if (x.dtype() != DType::fp16) return;
  Value finite;
  {
    const Value size = unary("abs", detached(x));  // nothing of it reaches the loss
    const Value other = compare_scalar("ne.Scalar", size);
    const Value number = compare("eq.Tensor", x, x);
    finite = pointwise("mul.Tensor", DType::boolean, number, other);
  }
  const ReductionScratch split = full_reduction_scratch(numel(x.shape()).value(), 1, c.b.gpu);
  const Value answer = reduce("all", DType::boolean, Shape{}, std::move(finite), {}, 1, split);
  item(answer);
}

/// modeling_bart.py, BartEncoderLayer.forward and BartDecoderLayer.forward. Eager attention's weights are a variable of
/// the layer.
inline Value forward(Context& c, const BartConfig& g, const BartStack& s, const BartLayer& l, Value arg,
                     const BartSight& self, const BartSight& cross) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value weights, residual;
  const auto drop = [&](bool asked) {
    if (asked) x = dropout(c, x);
  };
  const auto attend = [&](const Projections& p, const BartSight& sight, bool causal, const LayerNorm& norm) {
    residual = x;
    Attended a = bart_attention(c, g, p, s.heads, causal, x, sight);
    x = std::move(a.out);
    weights = std::move(a.weights);
    drop(g.dropout);
    x = add(residual, x);
    x = forward(c, norm, x);
  };
  attend(l.self, self, s.decoder, l.self_norm);
  if (l.cross) attend(*l.cross, cross, false, l.cross_norm);
  residual = x;
  x = forward(c, l.fc1, x);
  {
    InScope a(c.b, l.activation_scope);
    x = activate(c, g.activation, std::move(x));
  }
  drop(g.activation_dropout);
  x = forward(c, l.fc2, x);
  drop(g.dropout);
  x = add(residual, x);
  x = forward(c, l.final_norm, x);
  if (!s.decoder) ask_for_infinities(c, x);
  return x;
}

/// masking_utils.py, create_bidirectional_mask of a mask that hides nothing, as the host finds out: none is made.
inline void check_bart_mask(Context& c, const Value& attention_mask) {
  if (c.padded)
    throw Error("plan.more_sizes", "BART over sequences of several lengths is not modelled", "give images of one size");
  if (c.stack().makes_masks) bidirectional_mask(c, eager::to(attention_mask, DType::boolean), false);
}

/// modeling_bart.py, BartEncoder.forward of embeddings[B, S, hidden].
inline Value encode(Context& c, const BartConfig& g, const BartStack& s, const Value& embeds,
                    const Value& attention_mask) {
  using namespace eager;
  InScope in(c.b, s.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  Value positions;
  {
    InScope p(c.b, s.embed_positions.scope);
    const Value ids = expand(unsqueeze(fill(c.b, "arange.start", {tokens}, DType::int64), 0), {batch, tokens});
    Value shifted = add_scalar(ids);
    positions = forward(c, s.embed_positions, std::move(shifted));
  }
  Value x = add(embeds, positions);
  x = forward(c, s.norm, x);
  if (g.dropout) x = dropout(c, x);
  check_bart_mask(c, attention_mask);
  LayerRepeater repeat(c.b);
  for (const BartLayer& l : s.layers)
    x = repeat({0, l.scope, l.self.first()}, x, {}, [&](const Value& h) { return forward(c, g, s, l, h, {}, {}); });
  return x;
}

/// modeling_bart.py, BartDecoder.forward of ids[B, T] over the encoder's states and their mask. The decoder's own mask
/// is made of ones, in fp32.
inline Value decode(Context& c, const BartConfig& g, const BartStack& s, const Value& ids, const Value& states,
                    const Value& attention_mask, Cache& cache) {
  using namespace eager;
  InScope in(c.b, s.scope);
  const std::size_t layers = s.layers.size();
  const std::int64_t seen = cache.layers.front().seen, batch = ids.size(0), tokens = ids.size(1);
  const Value embeds = scaled_embedding(c, s.embed_tokens, ids);
  const Value position_ids = add_scalar(arange(c.b, tokens));
  Value mask;
  if (c.stack().makes_masks) {
    mask = fill(c.b, "ones", {batch, seen + tokens}, DType::fp32);
    mask = causal_mask(c, {.batch = batch, .q_len = tokens, .kv_len = seen + tokens}, mask);
  }
  check_bart_mask(c, attention_mask);
  Value positions;
  {
    InScope p(c.b, s.embed_positions.scope);
    Value shifted = add_scalar(unsqueeze(position_ids, 0));
    positions = forward(c, s.embed_positions, std::move(shifted));
  }
  Value x = add(embeds, positions);
  x = forward(c, s.norm, x);
  if (g.dropout) x = dropout(c, x);
  LayerRepeater repeat(c.b);
  for (std::size_t i = 0; i < layers; ++i) {
    const BartLayer& l = s.layers[i];
    CacheLayer &own = cache.layers[i], &fixed = cache.layers[layers + i];
    const std::array<Value*, 4> state{&own.keys, &own.values, &fixed.keys, &fixed.values};
    x = repeat({1, l.scope, l.self.first()}, x, state, [&](const Value& h) {
      return forward(c, g, s, l, h, {.mask = mask, .cache = &own}, {.states = &states, .cache = &fixed});
    });
  }
  // Of copied layers too; without a cache nothing has been seen.
  for (std::size_t i = 0; i < layers; ++i)
    if (!cache.layers[i].off) cache.layers[i].seen = seen + tokens;
  return x;
}

}  // namespace vlmest
