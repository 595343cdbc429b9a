// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/decoder/t5_blocks.hpp>
#include <vlmest/nn/mask.hpp>

namespace vlmest {

struct T5Stack {
  ScopeId scope = 0, dropout_scope = 0;
  Embedding embed_tokens;
  std::vector<T5Block> blocks;
  RmsNorm norm;
};

/// Entries of the decoder: its own keys and values, which grow, and behind them those of the encoder's states.
inline Cache make_cache(const T5Config& g) {
  Cache r = empty_cache(checked_mul(g.decoder_layers, 2));
  for (std::size_t i = r.layers.size() / 2; i < r.layers.size(); ++i) r.layers[i].fixed = true;
  return r;
}

/// In the order of T5Stack.__init__. The table of embeddings is the model's: tying drops the stack's own.
inline T5Stack make_t5_stack(Context& c, const T5Config& g, const Embedding& shared, bool decoder) {
  Module m(c, decoder ? "decoder" : "encoder");
  T5Stack s{.scope = m.scope};
  {
    Module e(c, "embed_tokens");
    s.embed_tokens = {.scope = e.scope, .weight = shared.weight};
    c.b.existing("weight before tying", Role::buffer, c.dtype(), {g.vocab, g.hidden});
  }
  s.blocks = make_layers(decoder ? g.decoder_layers : g.encoder_layers,
                         [&](std::int32_t i) { return make_t5_block(c, g, i, decoder); });
  s.norm = make_t5_norm(c, g, "final_layer_norm");
  s.dropout_scope = c.b.child("dropout");
  return s;
}

/// masking_utils.py, create_bidirectional_mask of a mask that hides nothing, as the host finds out: none is made.
inline void check_both_ways_mask(Context& c, const Value& attention_mask) {
  using namespace eager;
  if (c.padded)
    throw Error("plan.more_sizes", "T5 over sequences of several lengths is not modelled", "give images of one size");
  const Value real = to(attention_mask, DType::boolean);
  item(reduce("all", DType::boolean, Shape{}, real));
}

/// masking_utils.py, create_causal_mask without a mask of padding: empty where attention is told is_causal.
inline Value t5_causal_mask(Context& c, const Value& x, std::int64_t seen) {
  if (c.plan.attention != AttentionKind::eager) return {};
  const MaskShape shape{.batch = x.size(0), .q_len = x.size(1), .kv_len = x.size(1) + seen};
  return additive_mask(c, materialised_mask(c, shape, {}));
}

/// modeling_t5.py, T5Stack.forward from embeddings on. The first block makes the position biases of all, so that it is
/// no copy of another.
template <class Sights>
Value run_blocks(Context& c, const T5Config& g, const T5Stack& s, const Value& embeds, Sights&& sights) {
  Value x = t5_dropout(c, g, s.dropout_scope, embeds);
  T5Biases biases;
  LayerRepeater repeat(c.b);
  for (std::size_t i = 0; i < s.blocks.size(); ++i) {
    const T5Block& l = s.blocks[i];
    T5Sight self, cross;
    sights(i, self, cross);
    const auto run = [&](const Value& h) { return forward(c, g, l, h, self, cross, biases); };
    if (i == 0) {
      x = run(x);
      continue;
    }
    std::vector<Value*> state;
    for (CacheLayer* entry : {self.cache, cross.cache})
      if (entry) state.insert(state.end(), {&entry->keys, &entry->values});
    x = repeat({0, l.scope, l.self.projections.first()}, x, state, run);
  }
  x = forward(c, s.norm, x);
  return t5_dropout(c, g, s.dropout_scope, x);
}

/// T5Stack.forward of the encoder.
inline Value encode(Context& c, const T5Config& g, const T5Stack& s, const Value& embeds, const Value& attention_mask) {
  InScope in(c.b, s.scope);
  check_both_ways_mask(c, attention_mask);
  return run_blocks(c, g, s, embeds, [](std::size_t, T5Sight&, T5Sight&) {});
}

/// T5Stack.forward of the decoder: ids[B, T] over the encoder's states and their mask.
inline Value decode(Context& c, const T5Config& g, const T5Stack& s, const Value& ids, const Value& states,
                    const Value& attention_mask, Cache& cache) {
  InScope in(c.b, s.scope);
  const Value embeds = forward(c, s.embed_tokens, ids);
  const std::size_t layers = s.blocks.size();
  const std::int64_t seen = cache.layers.front().seen;
  const Value mask = t5_causal_mask(c, embeds, seen);
  check_both_ways_mask(c, attention_mask);
  Value x = run_blocks(c, g, s, embeds, [&](std::size_t i, T5Sight& self, T5Sight& cross) {
    self = {.mask = mask, .cache = &cache.layers[i], .causal = true};
    cross = {.states = &states, .cache = &cache.layers[layers + i]};
  });
  // Of copied blocks too; without a cache nothing has been seen.
  for (std::size_t i = 0; i < layers; ++i)
    if (!cache.layers[i].off) cache.layers[i].seen = seen + ids.size(1);
  return x;
}

}  // namespace vlmest
