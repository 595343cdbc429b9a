// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/relative_bias.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// T5 (Raffel et al., arXiv:1910.10683; transformers models/t5): an encoder and a decoder that share one table of
/// embeddings. Defaults: T5Config.
struct T5Config {
  std::int64_t vocab = 32128;
  std::int64_t hidden = 512;         ///< d_model
  std::int64_t head_dim = 64;        ///< d_kv; heads * head_dim need not be hidden
  std::int64_t intermediate = 2048;  ///< d_ff
  std::int64_t encoder_layers = 6;   ///< num_layers
  std::int64_t decoder_layers = 6;   ///< num_decoder_layers
  std::int64_t heads = 8;
  std::int64_t buckets = 32;  ///< relative_attention_num_buckets
  bool gated = false;         ///< is_gated_act
  bool dropout = true;        ///< dropout_rate is above zero
  bool scaled = true;         ///< scale_decoder_outputs
  bool tied = true;           ///< the output head shares the embeddings
  Activation activation = Activation::relu;
};

struct T5Attention {
  Projections projections;
  std::optional<Embedding> bias;  ///< of the first block's self-attention
  RmsNorm norm;
  ScopeId scope = 0, dropout_scope = 0;  ///< of the T5Layer… around it
};

struct T5FeedForward {
  ScopeId scope = 0, dense_scope = 0, activation_scope = 0, inner_dropout_scope = 0, dropout_scope = 0;
  Linear in;    ///< wi, or wi_0
  Linear gate;  ///< wi_1, where gated
  Linear out;   ///< wo
  RmsNorm norm;
};

struct T5Block {
  ScopeId scope = 0;
  T5Attention self;
  std::optional<T5Attention> cross;
  T5FeedForward mlp;
};

inline RmsNorm make_t5_norm(Context& c, const T5Config& g, const char* name) {
  return make_rms_norm(c, name, g.hidden, RmsNorm::Kind::t5);
}

/// In the order of T5LayerSelfAttention.__init__ (or T5LayerCrossAttention.__init__) and T5Attention.__init__.
inline T5Attention make_t5_attention(Context& c, const T5Config& g, const char* name, std::int32_t index, bool biased) {
  Module m(c, "layer", index);
  T5Attention a{.scope = m.scope};
  {
    Module s(c, name);
    const std::int64_t inner = checked_mul(g.heads, g.head_dim);
    a.projections.scope = s.scope;
    a.projections.q = make_linear(c, "q", g.hidden, inner, false);
    a.projections.k = make_linear(c, "k", g.hidden, inner, false);
    a.projections.v = make_linear(c, "v", g.hidden, inner, false);
    a.projections.out = make_linear(c, "o", inner, g.hidden, false);
    if (biased) a.bias = make_embedding(c, "relative_attention_bias", g.buckets, g.heads);
  }
  a.norm = make_t5_norm(c, g, "layer_norm");
  a.dropout_scope = c.b.child("dropout");
  return a;
}

/// In the order of T5LayerFF.__init__ and T5DenseGatedActDense.__init__. A model loaded as fp16 keeps wo in fp32
/// (T5PreTrainedModel, _keep_in_fp32_modules; modeling_utils.py applies it to that type alone).
inline T5FeedForward make_t5_feed_forward(Context& c, const T5Config& g, std::int32_t index) {
  Module m(c, "layer", index);
  T5FeedForward f{.scope = m.scope};
  Plan wide = c.plan;
  if (wide.dtype == DType::fp16) wide.dtype = DType::fp32;
  Context w = with_plan(c, wide);
  {
    Module d(c, "DenseReluDense");
    f.dense_scope = d.scope;
    f.in = make_linear(c, g.gated ? "wi_0" : "wi", g.hidden, g.intermediate, false);
    if (g.gated) f.gate = make_linear(c, "wi_1", g.hidden, g.intermediate, false);
    f.out = make_linear(w, "wo", g.intermediate, g.hidden, false);
    f.inner_dropout_scope = c.b.child("dropout");
    f.activation_scope = c.b.child("act");
  }
  f.norm = make_t5_norm(c, g, "layer_norm");
  f.dropout_scope = c.b.child("dropout");
  return f;
}

inline T5Block make_t5_block(Context& c, const T5Config& g, std::int32_t index, bool decoder) {
  Module m(c, "block", index);
  T5Block b{.scope = m.scope};
  b.self = make_t5_attention(c, g, "SelfAttention", 0, index == 0);
  if (decoder) b.cross = make_t5_attention(c, g, "EncDecAttention", 1, false);
  b.mlp = make_t5_feed_forward(c, g, decoder ? 2 : 1);
  return b;
}

inline Value t5_dropout(Context& c, const T5Config& g, ScopeId scope, Value x) {
  if (!g.dropout) return x;
  InScope in(c.b, scope);
  return dropout(c, std::move(x));
}

/// What an attention sees beside its input: the states of the other stack (empty: its own), the mask, and the cache
/// entry (null in an encoder).
struct T5Sight {
  const Value* states = nullptr;
  Value mask;
  CacheLayer* cache = nullptr;
  bool causal = false;
};

/// modeling_t5.py, T5Attention.forward. The first block makes the bias that all use; a cross-attention's is zeros. Keys
/// and values of the other stack are made once and stay in the cache.
inline Attended forward(Context& c, const T5Config& g, const T5Attention& a, const Value& x, const T5Sight& sight,
                        Value& bias) {
  using namespace eager;
  const Projections& p = a.projections;
  InScope in(c.b, p.scope);
  const bool crosses = sight.states != nullptr;
  Value q = split_heads(forward(c, p.q, x), g.head_dim);
  Value k, v;
  if (crosses && sight.cache->keys) {
    k = sight.cache->keys;
    v = sight.cache->values;
  } else {
    const Value& from = crosses ? *sight.states : x;
    k = split_heads(forward(c, p.k, from), g.head_dim);
    v = split_heads(forward(c, p.v, from), g.head_dim);
    if (sight.cache) update(c, *sight.cache, k, v);
  }
  if (!bias)
    bias = a.bias ? relative_position_bias(c, *a.bias, x.size(1), k.size(2), !sight.causal)
                  : fill(c.b, "zeros", {1, g.heads, x.size(1), k.size(2)}, q.dtype());
  Attended r = stacks::attend(c, {.q = q,
                                  .k = k,
                                  .v = v,
                                  .mask = sight.mask,
                                  .causal = sight.causal,
                                  .dropout = g.dropout,
                                  .fp32_softmax = false,
                                  .bias = bias});
  project_out(c, p.out, r);
  return r;
}

/// modeling_t5.py, T5LayerSelfAttention.forward and T5LayerCrossAttention.forward; the weights go to the caller.
inline Attended attend_residual(Context& c, const T5Config& g, const T5Attention& a, const Value& x,
                                const T5Sight& sight, Value& bias) {
  InScope in(c.b, a.scope);
  const Value normed = forward(c, a.norm, x);
  Attended attended = forward(c, g, a, normed, sight, bias);
  Value dropped = t5_dropout(c, g, a.dropout_scope, attended.out);
  Attended r;
  r.out = eager::add(x, std::move(dropped));
  r.weights = std::move(attended.weights);
  return r;
}

/// modeling_t5.py, T5DenseActDense.forward and T5DenseGatedActDense.forward.
inline Value forward_dense(Context& c, const T5Config& g, const T5FeedForward& f, const Value& arg) {
  using namespace eager;
  InScope in(c.b, f.dense_scope);
  const auto activated = [&](Value x) {
    InScope a(c.b, f.activation_scope);
    return activate(c, g.activation, std::move(x));
  };
  Value x = arg, act, linear;
  if (g.gated) {
    act = activated(forward(c, f.in, x));
    linear = forward(c, f.gate, x);
    x = mul(act, linear);
  } else {
    x = forward(c, f.in, x);
    x = activated(x);
  }
  x = t5_dropout(c, g, f.inner_dropout_scope, x);
  x = to(x, c.b.graph.tensor(f.out.weight).dtype);
  return forward(c, f.out, x);
}

/// modeling_t5.py, T5LayerFF.forward.
inline Value forward(Context& c, const T5Config& g, const T5FeedForward& f, const Value& x) {
  InScope in(c.b, f.scope);
  Value forwarded = forward(c, f.norm, x);
  forwarded = forward_dense(c, g, f, forwarded);
  Value dropped = t5_dropout(c, g, f.dropout_scope, forwarded);
  return eager::add(x, std::move(dropped));
}

/// modeling_t5.py, T5Block.forward: fp16 is kept from infinity; `bound` is a variable of the function.
inline void clamp_infinities(Value& x, Value& bound) {
  using namespace eager;
  if (x.dtype() != DType::fp16) return;
  Builder& b = x.builder();
  const Bytes absolute = data_bytes(x);  // isinf(x) is abs(x) == infinity (aten/src/ATen/native/TensorCompare.cpp)
  Value infinite;
  {
    Value of = x;
    infinite = emit1(b, "isinf",
                     MemoryOp{.read = absolute * 2,
                              .written = absolute + size_of(numel(x.shape()), DType::boolean),
                              .workspace = absolute,
                              .dtype = x.dtype(),
                              .kernels = 2},
                     b.result(DType::boolean, x.shape(), "isinf"), {absolute}, of);
  }
  const ReductionScratch split = full_reduction_scratch(numel(x.shape()).value(), 1, b.gpu);
  Value any = reduce("any", DType::boolean, Shape{}, std::move(infinite), {}, 1, split);
  Value low = fill(b, "scalar_tensor", Shape{}, DType::fp32), high = fill(b, "scalar_tensor", Shape{}, DType::fp32);
  bound = where(std::move(any), std::move(low), std::move(high));
  Value least = neg(bound);
  x = clamp(x, std::move(least), bound);
}

/// Position biases of a stack: variables of T5Stack.forward, which the first block sets.
struct T5Biases {
  Value self, cross;
};

/// modeling_t5.py, T5Block.forward.
inline Value forward(Context& c, const T5Config& g, const T5Block& l, const Value& arg, const T5Sight& self,
                     const T5Sight& cross, T5Biases& biases) {
  InScope in(c.b, l.scope);
  Value x = arg, weights, bound;
  const auto attend = [&](const T5Attention& a, const T5Sight& sight, Value& bias) {
    Attended r = attend_residual(c, g, a, x, sight, bias);
    x = std::move(r.out);
    weights = std::move(r.weights);
    clamp_infinities(x, bound);
  };
  attend(l.self, self, biases.self);
  if (l.cross) attend(*l.cross, cross, biases.cross);
  x = forward(c, g, l.mlp, x);
  clamp_infinities(x, bound);
  return x;
}

}  // namespace vlmest
