// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/family/moondream/blocks.hpp>
#include <vlmest/family/moondream/config.hpp>
#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/stack/attention.hpp>

/// Moondream 2's language model (moondream/torch/text.py): Phi's layers, attention and MLP side by side of one norm,
/// over keys and values that are buffers of the whole context.
namespace vlmest {

/// Entries that prefill puts in place.
inline Cache make_cache(const MoondreamText& g) {
  Cache r = empty_cache(g.layers);
  for (CacheLayer& l : r.layers) l.preallocated = true;
  return r;
}

namespace moondream {

struct TextBlock {
  ScopeId scope = 0, cache_scope = 0;
  LayerNorm norm;
  Pair attention, mlp;
};

struct Text {
  const MoondreamText* config = nullptr;
  ScopeId scope = 0;
  std::vector<TextBlock> blocks;
  LayerNorm post_norm;
  Linear head;
  TensorId wte = none;
  TensorId turns = none;  ///< freqs_cis: fp32 cosines and sines, [positions, rotated / 2, 2]
};

/// build_text_model, in its order.
inline Text make_text(Context& c, const MoondreamText& g) {
  Module m(c, "text", Part::language);
  Text t{.config = &g, .scope = m.scope};
  t.blocks = make_layers(g.layers, [&](std::int32_t i) {
    Module block(c, "blocks", i);
    TextBlock b{.scope = block.scope};
    b.norm = make_layer_norm(c, "ln", g.hidden);
    b.attention = make_attention(c, g.hidden, (g.heads + 2 * g.kv_heads) * g.head_dim);
    b.mlp = make_mlp(c, "mlp", g.hidden, g.intermediate, g.hidden);
    b.cache_scope = c.b.child("kv_cache");
    return b;
  });
  t.post_norm = make_layer_norm(c, "post_ln", g.hidden);
  t.head = make_linear(c, "lm_head", g.hidden, g.vocab, true);
  t.wte = parameter(c, "wte", {g.vocab, g.hidden});
  c.b.graph.embeddings.push_back(t.wte);
  t.turns = buffer(c, "freqs_cis", {g.context, g.rotated / 2, 2}, DType::fp32);
  return t;
}

/// moondream.py, KVCache.__init__.
inline Shape cache_shape(const MoondreamText& g) { return {1, g.kv_heads, g.context, g.head_dim}; }

/// Where a call's tokens stand: the host's list of positions, or in a decode step one on the device.
struct Positions {
  std::int64_t tokens = 0;
  std::int64_t seen = 0;  ///< positions that hold something when the call is over
  Value on_device;
};

/// A table's rows at those positions.
inline Value at(const Value& table, const Positions& p) {
  return p.on_device ? eager::take_rows(table, p.on_device) : eager::host_index(table, {p.tokens});
}

/// rope.py, apply_rotary_emb without interleaving: x[B, H, S, D], the halves of its first channels are turned in fp32
/// and then stand in turns.
inline Value rotated(Context& c, const Text& t, const Value& x, const Positions& p) {
  using namespace eager;
  const std::int64_t turned = t.config->rotated, half = turned / 2;
  const Value x_pass = slice(x, 3, turned, x.size(3));
  const Value x_r = slice(x, 3, 0, half), x_i = slice(x, 3, half, turned);
  const Value table(c.b, t.turns);
  const auto factor = [&](std::int64_t which) { return unsqueeze(unsqueeze(at(select(table, 2, which), p), 0), 0); };
  const Value cos = factor(0);
  const Value sin = factor(1);
  const auto products = [&](const Value& a, const Value& b, bool less) {
    Value first = mul(x_r, a);
    Value second = mul(x_i, b);
    return less ? sub(std::move(first), std::move(second)) : add(std::move(first), std::move(second));
  };
  const Value out_r = products(cos, sin, true);
  const Value out_i = products(sin, cos, false);
  std::array<Value, 2> pair{out_r, out_i};
  const Value out = flatten(stack(pair, -1), -2, -1);
  Value narrow = to(out, x.dtype());
  return cat(std::move(narrow), x_pass, -1);
}

/// What all layers of a call are told.
struct Call {
  const Text& text;
  const Positions& positions;
  const Value& mask;  ///< bool, [.., S, context]
  bool causal = true;
};

/// text.py, attn: keys and values go into the cache, and attention runs over all of it.
inline Value self_attention(Context& c, const Call& call, const Pair& a, const Value& x, CacheLayer& cache) {
  using namespace eager;
  const MoondreamText& g = *call.text.config;
  InScope in(c.b, a.scope);
  const std::int64_t width = g.heads * g.head_dim, kv_width = g.kv_heads * g.head_dim;
  Value q, k, v;
  {
    const std::array<std::int64_t, 3> parts{width, kv_width, kv_width};
    const auto qkv = split(forward(c, a.in, x), parts, -1);
    q = heads(qkv[0], g.head_dim);
    k = heads(qkv[1], g.head_dim);
    v = heads(qkv[2], g.head_dim);
  }
  const Value table(c.b, call.text.turns);
  const Value cos = select(table, 2, 0), sin = select(table, 2, 1);
  stacks::rotate(c, q, k, cos, sin, [&] {
    q = rotated(c, call.text, q, call.positions);
    k = rotated(c, call.text, k, call.positions);
  });
  put_at(cache.keys, call.positions.on_device, k);
  put_at(cache.values, call.positions.on_device, v);
  k = cache.keys;
  v = cache.values;
  Value out;
  if (c.stack().attends_by_flash) {
    const std::int64_t seen = call.positions.seen;
    out = stacks::attend(c, {.q = q, .k = slice(k, 2, 0, seen), .v = slice(v, 2, 0, seen), .causal = call.causal}).out;
  } else {
    out = transpose(scaled_dot_product_attention(q, k, v, call.mask, false), 1, 2);
  }
  out = reshape(std::move(out), {x.size(0), x.size(1), g.hidden});
  const Value out0 = forward(c, a.out, out);
  return out0;
}

/// text.py, text_decoder: x[1, S, hidden] -> the same. What a layer made of its input stays until the next one has made
/// its own.
inline Value decode_text(Context& c, const Call& call, Value arg, Cache& cache) {
  using namespace eager;
  InScope in(c.b, call.text.scope);
  Value x = std::move(arg), l_in, l_attn, l_mlp;
  LayerRepeater repeat(c.b);
  for (std::size_t i = 0; i < call.text.blocks.size(); ++i) {
    const TextBlock& b = call.text.blocks[i];
    CacheLayer& entry = cache.layers[i];
    const std::array<Value*, 5> state{&entry.keys, &entry.values, &l_in, &l_attn, &l_mlp};
    x = repeat({0, b.scope, b.norm.weight}, x, state, [&](const Value& h) {
      InScope block(c.b, b.scope);
      l_in = forward(c, b.norm, h);
      l_attn = self_attention(c, call, b.attention, l_in, entry);
      l_mlp = forward_mlp(c, b.mlp, l_in);
      Value sum = add(h, l_attn);
      return add(std::move(sum), l_mlp);
    });
    entry.seen = call.positions.seen;
  }
  return x;
}

/// text.py, text_encoder.
inline Value embed_tokens(Context& c, const Text& t, Value ids) {
  InScope in(c.b, t.scope);
  return eager::embedding(Value(c.b, t.wte), std::move(ids));
}

/// text.py, lm_head: the logits of the last position alone, [1, vocab].
inline Value last_logits(Context& c, const Text& t, const Value& hidden) {
  InScope in(c.b, t.scope);
  Value last = eager::select(hidden, 1, hidden.size(1) - 1);
  last = forward(c, t.post_norm, last);
  return forward(c, t.head, last);
}

}  // namespace moondream
}  // namespace vlmest
