// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The Q-Former (Li et al., BLIP-2, arXiv:2301.12597, section 3.1; transformers models/blip_2, Blip2QFormerModel):
/// learned queries read the image through cross-attention. InstructBLIP's (Dai et al., arXiv:2305.06500, section 2.2;
/// models/instructblip, InstructBlipQFormerModel) attend to the tokens of the instruction as well, which run beside
/// them. Defaults: Blip2QFormerConfig.
struct QFormerConfig {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t cross_every = 2;        ///< cross_attention_frequency
  std::int64_t encoder_hidden = 1408;  ///< the tower's width
  bool text_input = false;             ///< use_qformer_text_input: a second MLP for text, which queries pass by
  bool instructed = false;             ///< it embeds the instruction's tokens itself, and has that second MLP
  std::int64_t vocab = 30522;          ///< vocab_size, of those embeddings
  std::int64_t positions = 512;        ///< max_position_embeddings
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
  QFormerMlp text_mlp;  ///< only where there is one
  QFormerMlp mlp;       ///< of queries
};

/// Of an instruction's tokens.
struct QFormerEmbeddings {
  ScopeId scope = 0;
  Embedding words, positions;
  TensorId position_ids = none;
};

struct QFormer {
  const QFormerConfig* config = nullptr;
  ScopeId scope = 0, dropout_scope = 0;
  std::optional<QFormerEmbeddings> embeddings;
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

/// In the order of Blip2QFormerModel.__init__ and Blip2QFormerLayer.__init__; of
/// InstructBlipQFormerEmbeddings.__init__, which holds the norm where there is one, and
/// InstructBlipQFormerLayer.__init__.
inline QFormer make_qformer(Context& c, const QFormerConfig& g) {
  QFormer f{.config = &g, .scope = c.b.scope()};
  const auto input_norm = [&] {
    f.norm = make_layer_norm(c, "layernorm", g.hidden);
    f.dropout_scope = c.b.child("dropout");
  };
  if (g.instructed) {
    Module m(c, "embeddings");
    QFormerEmbeddings e{.scope = m.scope};
    e.words = make_embedding(c, "word_embeddings", g.vocab, g.hidden);
    e.positions = make_embedding(c, "position_embeddings", g.positions, g.hidden);
    input_norm();
    e.position_ids = buffer(c, "position_ids", {1, g.positions}, DType::int64);
    f.embeddings = e;
  } else {
    input_norm();
  }
  Module e(c, "encoder");
  for (std::int64_t i = 0; i < g.layers; ++i) {
    Module m(c, "layer", static_cast<std::int32_t>(i));
    QFormerLayer l{.scope = m.scope};
    l.attention = make_qformer_attention(c, g, "attention", g.hidden);
    if (i % g.cross_every == 0) l.cross = make_qformer_attention(c, g, "crossattention", g.encoder_hidden);
    if (g.text_input || g.instructed) l.text_mlp = make_qformer_mlp(c, g, "intermediate", "output");
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

/// modeling_blip_2.py, Blip2QFormerLayer.feed_forward_chunk_query and feed_forward_chunk.
inline Value forward(Context& c, const QFormerConfig& g, const QFormerMlp& mlp, const Value& x) {
  Value inner;
  {
    InScope m(c.b, mlp.scope);
    inner = forward(c, mlp.dense, x);
    InScope a(c.b, mlp.activation_scope);
    inner = activate(c, g.activation, inner);
  }
  return forward(c, mlp.output, inner, x, g.hidden_dropout);
}

/// modeling_blip_2.py, Blip2QFormerLayer.forward for queries alone; modeling_instructblip.py,
/// InstructBlipQFormerLayer.forward: x[N, queries + text, hidden], of which the `queries` ahead read the image.
inline Value forward(Context& c, const QFormerConfig& g, const QFormerLayer& l, Value arg, const Value& image,
                     std::int64_t queries) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  const Value attended = forward(c, g, l.attention, x, x);
  const std::int64_t tokens = attended.size(1);
  Value ahead = slice(attended, 1, 0, queries);
  if (l.cross) ahead = forward(c, g, *l.cross, ahead, image);
  Value r = forward(c, g, l.mlp, ahead);
  if (tokens > queries) {
    const Value text = forward(c, g, l.text_mlp, slice(attended, 1, queries, tokens));
    r = cat(r, text, 1);
  }
  return r;
}

/// The norm and the dropout in front of the layers.
inline Value normed_input(Context& c, const QFormer& f, Value arg) {
  Value x = std::move(arg);
  x = forward(c, f.norm, x);
  if (!f.config->hidden_dropout) return x;
  InScope d(c.b, f.dropout_scope);
  return dropout(c, x);
}

/// modeling_instructblip.py, InstructBlipQFormerEmbeddings.forward: the embeddings of ids[N, T] behind the queries, in
/// the type of the norm's weight. Positions and what they give are variables of the function.
inline Value embed_instruction(Context& c, const QFormer& f, const Value& queries, const Value& ids) {
  using namespace eager;
  const QFormerEmbeddings& e = *f.embeddings;
  InScope in(c.b, e.scope);
  const Value positions = clone(slice(Value(c.b, e.position_ids), 1, 0, ids.size(1)));
  Value x = input_embedding(c, forward(c, e.words, ids));
  const Value places = forward(c, e.positions, positions);
  x = add(x, places);
  x = cat(queries, x, 1);
  x = to(x, c.dtype());
  return normed_input(c, f, std::move(x));
}

/// A mask of ones, which the host finds to be whole (masking_utils.py, create_bidirectional_mask).
inline void find_whole(Context& c, const Value& mask) {
  using namespace eager;
  if (!c.stack().makes_masks) return;
  Value real = to(mask, DType::boolean);
  item(reduce("all", DType::boolean, Shape{}, real));
}

/// What an instructed Q-Former is given beside its queries: ids int64[N, T], and a mask int64[N, queries + T] over
/// both.
struct QFormerText {
  Value ids, mask;
};

/// modeling_blip_2.py, Blip2QFormerModel.forward: queries[N, Q, hidden] over image[N, T, encoder_hidden] and its mask
/// of ones [N, T], where the caller gives one. c holds the Q-Former's own type, to which its inputs are cast.
/// modeling_instructblip.py, InstructBlipQFormerModel.forward: the same with `text`, whose results stand behind those
/// of the queries.
inline Value forward(Context& c, const QFormer& f, const Value& queries, const Value& image, const Value& mask = {},
                     const QFormerText& text = {}) {
  using namespace eager;
  InScope in(c.b, f.scope);
  const Value x =
      f.embeddings ? embed_instruction(c, f, queries, text.ids) : normed_input(c, f, to(queries, c.dtype()));
  if (text.mask) find_whole(c, text.mask);
  const Value source = to(image, c.dtype());
  if (mask) find_whole(c, mask);
  const std::int64_t count = queries.size(1);
  Value y = x;
  LayerRepeater repeat(c.b);
  for (const auto& l : f.layers)
    y = repeat({l.cross ? 1 : 0, l.scope, l.attention.query.weight}, y, {},
               [&](const Value& h) { return forward(c, *f.config, l, h, source, count); });
  return y;
}

}  // namespace vlmest
