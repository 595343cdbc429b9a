// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>

namespace vlmest {

/// InternLM2, which brings its own code: OpenGVLab/InternVL internvl_chat/internvl/model/internlm2/
/// modeling_internlm2.py. Queries, keys and values of one linear, grouped by key head; every layer has its own tables
/// of angles; masks, caches (tuples of tensors) and attention are those of transformers before it had classes for them.
struct InternLm2Config {
  std::int64_t vocab = 103168;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 11008;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t head_dim = 128;
  std::int64_t positions = 2048;  ///< max_position_embeddings: rows of the tables
  bool bias = true;
  Activation activation = Activation::silu;
};

struct InternLm2Layer {
  ScopeId scope = 0;
  Projections attention;            ///< q is wqkv, out is wo
  TensorId cos = none, sin = none;  ///< [positions, head_dim]
  GatedMlp mlp;
  RmsNorm attention_norm, ffn_norm;
};

struct InternLm2Decoder {
  const InternLm2Config* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<InternLm2Layer> layers;
  RmsNorm norm;
};

/// InternLM2DecoderLayer.__init__. The tables are made under torch's default type, which from_pretrained sets to the
/// model's.
inline InternLm2Layer make_internlm2_layer(Context& c, const InternLm2Config& g, std::int32_t index) {
  Module m(c, "layers", index);
  InternLm2Layer l;
  l.scope = m.scope;
  {
    Module a(c, "attention");
    const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
    l.attention.scope = a.scope;
    l.attention.q = make_linear(c, "wqkv", g.hidden, checked_add(queries, checked_mul(keys, 2)), g.bias);
    l.attention.out = make_linear(c, "wo", queries, g.hidden, g.bias);
    Module r(c, "rotary_emb");
    buffer(c, "inv_freq", {g.head_dim / 2}, DType::fp32);
    l.cos = buffer(c, "cos_cached", {g.positions, g.head_dim}, c.dtype());
    l.sin = buffer(c, "sin_cached", {g.positions, g.head_dim}, c.dtype());
  }
  {
    Module f(c, "feed_forward");
    l.mlp.scope = f.scope;
    l.mlp.activation = g.activation;
    l.mlp.gate = make_linear(c, "w1", g.hidden, g.intermediate, false);
    l.mlp.up = make_linear(c, "w3", g.hidden, g.intermediate, false);
    l.mlp.down = make_linear(c, "w2", g.intermediate, g.hidden, false);
    l.mlp.activation_scope = c.b.child("act_fn");
  }
  l.attention_norm = make_rms_norm(c, "attention_norm", g.hidden);
  l.ffn_norm = make_rms_norm(c, "ffn_norm", g.hidden);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of InternLM2Model.__init__.
inline InternLm2Decoder make_decoder(Context& c, const InternLm2Config& g) {
  InternLm2Decoder d;
  d.config = &g;
  d.scope = c.b.scope();
  d.embed_tokens = make_embedding(c, "tok_embeddings", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_internlm2_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  return d;
}

inline Cache make_cache(const InternLm2Config& g) { return empty_cache(g.layers); }

/// modeling_internlm2.py, _make_causal_mask and _expand_mask: both at full size in the activations' type, and their
/// sum: [B, 1, S, L]. A single token needs no causal one. FlashAttention asks for padding instead.
inline Value internlm2_mask(Context& c, const Value& padding, std::int64_t tokens) {
  using namespace eager;
  if (!c.stack().makes_masks) return {};
  if (c.plan.attention == AttentionKind::flash) {
    refuse_unpadding(c);
    item(reduce("any", DType::boolean, Shape{}, compare_scalar("eq.Scalar", padding)));
    return {};
  }
  const DType t = c.dtype();
  const std::int64_t batch = padding.size(0), keys = padding.size(1);
  Value causal;
  if (tokens > 1) {
    Value lowest = from_host(c.b, Shape{}, DType::fp32);
    item(std::move(lowest));
    Value mask = fill(c.b, "full", {tokens, tokens}, DType::fp32);
    const Value at = arange(c.b, tokens);
    Value next = view(add_scalar(at), {tokens, 1});
    Value seen = compare("lt.Tensor", at, std::move(next));
    mask = pointwise_("masked_fill_.Scalar", std::move(mask), std::move(seen));
    mask = to(mask, t);
    causal = expand(unsqueeze(unsqueeze(mask, 0), 0), {batch, 1, tokens, tokens});
  }
  Value expanded;
  {
    const Value wide = to(expand(unsqueeze(unsqueeze(padding, 1), 1), {batch, 1, tokens, keys}), t);
    const Value inverted = rsub_scalar(wide);
    expanded = masked_fill(inverted, to(inverted, DType::boolean));
  }
  return causal ? add(expanded, causal) : expanded;
}

/// Keys and values joined to those of the tuple; the first ones are kept as they are, the values thereby with all of
/// the projection that they are a view of. Caches in another layout are assumed to work as in transformers.
inline void update_tuple(Context& c, CacheLayer& layer, Value& k, Value& v) {
  if (layer.off) return;
  const KvLayout& kv = c.plan.kv;
  if (kv.kind == KvLayout::Kind::paged || kv.dtype.value_or(k.dtype()) != k.dtype()) return update(c, layer, k, v);
  layer.seen += k.size(2);
  if (layer.keys) {
    k = eager::cat(layer.keys, k, 2);
    v = eager::cat(layer.values, v, 2);
  }
  c.b.label(k, "keys", Role::kv_cache);
  c.b.label(v, "values", Role::kv_cache);
  layer.keys = k;
  layer.values = v;
}

/// modeling_internlm2.py, InternLM2Attention.forward and InternLM2FlashAttention2.forward.
inline Value self_attention(Context& c, const InternLm2Config& g, const InternLm2Layer& l, const Value& x,
                            const Value& mask, const Value& position_ids, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1), groups = g.heads / g.kv_heads;
  const Value qkv = view(forward(c, l.attention.q, x), {batch, tokens, g.kv_heads, groups + 2, g.head_dim});
  Value q = reshape(slice(qkv, 3, 0, groups), {batch, tokens, g.heads, g.head_dim});
  Value k = select(qkv, 3, groups), v = select(qkv, 3, groups + 1);
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  v = transpose(std::move(v), 1, 2);
  {
    const Shape rows{1, tokens, g.head_dim};
    CosSin angles;
    const auto table = [&](TensorId id) { return to(slice(Value(c.b, id), 0, 0, cache.seen + tokens), q.dtype()); };
    const Value cos = table(l.cos), sin = table(l.sin);
    if (c.stack().gathers_angles) {
      angles.cos = gather_rows("index.Tensor", cos, position_ids, rows);
      angles.sin = gather_rows("index.Tensor", sin, position_ids, rows);
    } else {
      angles = {unsqueeze(slice(cos, 0, cache.seen, cache.seen + tokens), 0),
                unsqueeze(slice(sin, 0, cache.seen, cache.seen + tokens), 0),
                {}};
    }
    apply_rope(c, q, k, angles);
  }
  update_tuple(c, cache, k, v);
  Value weights, out;
  if (c.attention() == AttentionKind::flash) {
    out = flash_attention(c, {.q = q, .k = k, .v = v, .causal = true});
  } else {
    k = repeat_kv(k, groups);
    v = repeat_kv(v, groups);
    weights = div_scalar(matmul(q, transpose(k, 2, 3)));
    if (mask) weights = add(weights, mask);
    weights = to(softmax(weights, DType::fp32), q.dtype());
    out = matmul(weights, v);
    out = contiguous(transpose(out, 1, 2));
  }
  out = reshape(out, {batch, tokens, g.hidden});
  out = forward(c, l.attention.out, out);
  return out;
}

inline Value forward(Context& c, const InternLm2Config& g, const InternLm2Layer& l, Value arg, const Value& mask,
                     const Value& position_ids, CacheLayer& cache) {
  const auto attention = [&](const Value& x) {
    return Attended{self_attention(c, g, l, x, mask, position_ids, cache), {}};
  };
  return pre_norm_layer(c, l.scope, std::move(arg), l.attention_norm, attention, l.ffn_norm,
                        [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// InternLM2Model.forward: embeddings[B, S, hidden] -> normed hidden states. The caller's tuple of earlier keys and
/// values stays alive beside the new one. Throws Error for sequences that are longer than the tables.
inline Value forward(Context& caller, const InternLm2Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const InternLm2Config& g = *d.config;
  const Plan plan = without_sdpa(caller.plan);
  Context c = with_plan(caller, plan);
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t tokens = embeds.size(1), all = checked_add(cache.layers.front().seen, tokens);
  if (all > g.positions)
    throw Error("plan.seq",
                std::to_string(all) + " tokens are more than max_position_embeddings, " + std::to_string(g.positions) +
                    ": each layer would make its tables of angles anew, which is not modelled",
                "give a shorter sequence");
  const Cache before = cache;
  const Value position_ids = unsqueeze(arange(c.b, tokens), 0);
  const Value mask = internlm2_mask(c, attention_mask, tokens);
  Value x = embeds;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const InternLm2Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, position_ids, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
