// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The Q-Former (Li et al., BLIP-2, arXiv:2301.12597, section 3.1; transformers models/blip_2, Blip2QFormerModel):
/// learned queries read the image through cross-attention. Defaults: Blip2QFormerConfig.
struct QFormerConfig {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t cross_every = 2;        ///< cross_attention_frequency
  std::int64_t encoder_hidden = 1408;  ///< the tower's width
  bool text_input = false;             ///< use_qformer_text_input: a second MLP for text, which queries pass by
  bool hidden_dropout = true;          ///< hidden_dropout_prob is above zero
  bool attention_dropout = true;       ///< attention_probs_dropout_prob is
  Activation activation = Activation::gelu;
};

/// A linear layer whose result, dropped out, is added to the residual and normed (BERT's output block).
struct QFormerOutput {
  ScopeId scope = 0, dropout_scope = 0;
  Linear dense;
  LayerNorm norm;
};
struct QFormerAttention {
  ScopeId scope = 0, attention_scope = 0;
  Linear query, key, value;
  QFormerOutput output;
};
struct QFormerMlp {
  ScopeId scope = 0, activation_scope = 0;
  Linear dense;
  QFormerOutput output;
};

struct QFormerLayer {
  ScopeId scope = 0;
  QFormerAttention attention;
  std::optional<QFormerAttention> cross;
  QFormerMlp mlp;
};

struct QFormer {
  const QFormerConfig* config = nullptr;
  ScopeId scope = 0, dropout_scope = 0;
  LayerNorm norm;
  std::vector<QFormerLayer> layers;
};

inline QFormerOutput make_qformer_output(Context& c, const char* name, std::int64_t in, std::int64_t out) {
  Module m(c, name);
  QFormerOutput o{.scope = m.scope};
  o.dense = make_linear(c, "dense", in, out, true);
  o.norm = make_layer_norm(c, "LayerNorm", out);
  o.dropout_scope = c.b.child("dropout");
  return o;
}

inline QFormerAttention make_qformer_attention(Context& c, const QFormerConfig& g, const char* name,
                                               std::int64_t source) {
  Module m(c, name);
  QFormerAttention a{.scope = m.scope};
  {
    Module s(c, "attention");
    a.attention_scope = s.scope;
    a.query = make_linear(c, "query", g.hidden, g.hidden, true);
    a.key = make_linear(c, "key", source, g.hidden, true);
    a.value = make_linear(c, "value", source, g.hidden, true);
  }
  a.output = make_qformer_output(c, "output", g.hidden, g.hidden);
  return a;
}

inline QFormerMlp make_qformer_mlp(Context& c, const QFormerConfig& g, const char* in, const char* out) {
  QFormerMlp r;
  {
    Module m(c, in);
    r.scope = m.scope;
    r.dense = make_linear(c, "dense", g.hidden, g.intermediate, true);
    r.activation_scope = c.b.child("intermediate_act_fn");
  }
  r.output = make_qformer_output(c, out, g.intermediate, g.hidden);
  return r;
}

/// In the order of Blip2QFormerModel.__init__ and Blip2QFormerLayer.__init__.
inline QFormer make_qformer(Context& c, const QFormerConfig& g) {
  QFormer f{.config = &g, .scope = c.b.scope()};
  f.norm = make_layer_norm(c, "layernorm", g.hidden);
  f.dropout_scope = c.b.child("dropout");
  Module e(c, "encoder");
  for (std::int64_t i = 0; i < g.layers; ++i) {
    Module m(c, "layer", static_cast<std::int32_t>(i));
    QFormerLayer l{.scope = m.scope};
    l.attention = make_qformer_attention(c, g, "attention", g.hidden);
    if (i % g.cross_every == 0) l.cross = make_qformer_attention(c, g, "crossattention", g.encoder_hidden);
    if (g.text_input) make_qformer_mlp(c, g, "intermediate", "output");
    l.mlp = make_qformer_mlp(c, g, "intermediate_query", "output_query");
    f.layers.push_back(l);
  }
  return f;
}

/// modeling_blip_2.py, Blip2QFormerSelfOutput.forward and Blip2QFormerOutput.forward.
inline Value forward(Context& c, const QFormerOutput& o, Value arg, const Value& residual, bool drop) {
  Value x = std::move(arg);
  InScope in(c.b, o.scope);
  x = forward(c, o.dense, x);
  if (drop) {
    InScope d(c.b, o.dropout_scope);
    x = dropout(c, x);
  }
  x = forward(c, o.norm, eager::add(x, residual));
  return x;
}

/// modeling_blip_2.py, Blip2QFormerAttention.forward; `source` gives keys and values. Eager attention here has its
/// softmax in the activations' type.
inline Value forward(Context& c, const QFormerConfig& g, const QFormerAttention& a, const Value& x,
                     const Value& source) {
  using namespace eager;
  InScope in(c.b, a.scope);
  Attended attended;  // the weights stay to the end
  {
    InScope s(c.b, a.attention_scope);
    const auto heads = [&](const Linear& p, const Value& from) {
      return transpose(view(forward(c, p, from), {from.size(0), from.size(1), -1, g.hidden / g.heads}), 1, 2);
    };
    Value q = heads(a.query, x);
    Value k = heads(a.key, source);
    Value v = heads(a.value, source);
    attended = stacks::attend(c, {.q = q, .k = k, .v = v, .dropout = g.attention_dropout, .fp32_softmax = false});
    attended.out = reshape(attended.out, {x.size(0), x.size(1), -1});
  }
  return forward(c, a.output, attended.out, x, g.hidden_dropout);
}

/// modeling_blip_2.py, Blip2QFormerLayer.forward for queries alone.
inline Value forward(Context& c, const QFormerConfig& g, const QFormerLayer& l, Value arg, const Value& image) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value attended = forward(c, g, l.attention, x, x);
  Value queries = attended;
  if (l.cross) queries = forward(c, g, *l.cross, queries, image);
  Value inner;
  {
    InScope m(c.b, l.mlp.scope);
    inner = forward(c, l.mlp.dense, queries);
    InScope a(c.b, l.mlp.activation_scope);
    inner = activate(c, g.activation, inner);
  }
  return forward(c, l.mlp.output, inner, queries, g.hidden_dropout);
}

/// modeling_blip_2.py, Blip2QFormerModel.forward: queries[N, Q, hidden] over image[N, T, encoder_hidden] and its mask
/// of ones [N, T], which the host finds to be whole. c holds the Q-Former's own type, to which its inputs are cast.
inline Value forward(Context& c, const QFormer& f, const Value& queries, const Value& image, const Value& mask) {
  using namespace eager;
  InScope in(c.b, f.scope);
  Value x = forward(c, f.norm, to(queries, c.dtype()));
  if (f.config->hidden_dropout) {
    InScope d(c.b, f.dropout_scope);
    x = dropout(c, x);
  }
  Value source = to(image, c.dtype());
  if (c.stack().makes_masks) {
    Value real = to(mask, DType::boolean);
    item(reduce("all", DType::boolean, Shape{}, real));
  }
  Value y = x;
  LayerRepeater repeat(c.b);
  for (const auto& l : f.layers)
    y = repeat({l.cross ? 1 : 0, l.scope, l.attention.query.weight}, y, {},
               [&](const Value& h) { return forward(c, *f.config, l, h, source); });
  return y;
}

}  // namespace vlmest
