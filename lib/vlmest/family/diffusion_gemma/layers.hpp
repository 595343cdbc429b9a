// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/nn/decoder/gemma4_text.hpp>

/// The layers of DiffusionGemma (transformers 5.17 models/diffusion_gemma, modeling_diffusion_gemma.py): Gemma 4's,
/// once as an encoder that fills the cache and once as a decoder that reads it.
namespace vlmest {

/// In the order of DiffusionGemmaEncoderTextAttention.__init__: projections, then norms.
inline Gemma4Attention make_diffusion_attention(Context& c, const Gemma4TextConfig& g, std::int64_t layer) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "self_attn");
  Gemma4Attention a{.scope = m.scope, .slides = g.slides(layer)};
  a.head_dim = a.slides ? g.head_dim : g.full_head_dim;
  a.keys_as_values = !a.slides;
  const std::int64_t queries = checked_mul(g.heads, a.head_dim);
  const std::int64_t keys = checked_mul(a.slides ? g.kv_heads : g.full_kv_heads, a.head_dim);
  a.q = make_linear(c, "q_proj", g.hidden, queries, g.attention_bias);
  a.k = make_linear(c, "k_proj", g.hidden, keys, g.attention_bias);
  if (!a.keys_as_values) a.v = make_linear(c, "v_proj", g.hidden, keys, g.attention_bias);
  a.out = make_linear(c, "o_proj", queries, g.hidden, g.attention_bias);
  a.q_norm = make_rms_norm(c, "q_norm", a.head_dim, kind);
  a.k_norm = make_rms_norm(c, "k_norm", a.head_dim, kind);
  a.v_norm = make_weightless_norm(c, "v_norm");
  return a;
}

/// In the order of DiffusionGemmaEncoderTextLayer.__init__ and DiffusionGemmaDecoderTextLayer.__init__.
inline Gemma4Layer make_diffusion_layer(Context& c, const Gemma4TextConfig& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "layers", index);
  Gemma4Layer l{.scope = m.scope};
  l.attention = make_diffusion_attention(c, g, index);
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  l.pre_feedforward_norm = make_rms_norm(c, "pre_feedforward_layernorm", g.hidden, kind);
  l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden, kind);
  l.scalar = buffer(c, "layer_scalar", {1}, c.dtype());
  l.moe = make_gemma4_experts(c, g.moe);
  return l;
}

/// A linear with the weight of another one. Biases are not tied.
inline Linear tied_linear(Context& c, const char* name, const Linear& of) {
  Module m(c, name);
  Linear l = of;
  l.scope = m.scope;
  if (of.bias != none) l.bias = parameter(c, "bias", c.b.graph.tensor(of.bias).shape);
  return l;
}
inline RmsNorm tied_norm(Context& c, const char* name, RmsNorm of) {
  of.scope = c.b.child(name);
  return of;
}

/// The decoder's layer whose weights are the encoder's: DiffusionGemmaModel._tied_weights_keys, which leaves biases and
/// buffers out.
inline Gemma4Layer make_tied_layer(Context& c, const Gemma4Layer& of, std::int32_t index) {
  Module m(c, "layers", index);
  Gemma4Layer l = of;
  l.scope = m.scope;
  {
    Module a(c, "self_attn");
    l.attention.scope = a.scope;
    l.attention.q = tied_linear(c, "q_proj", of.attention.q);
    l.attention.k = tied_linear(c, "k_proj", of.attention.k);
    if (!of.attention.keys_as_values) l.attention.v = tied_linear(c, "v_proj", of.attention.v);
    l.attention.out = tied_linear(c, "o_proj", of.attention.out);
    l.attention.q_norm = tied_norm(c, "q_norm", of.attention.q_norm);
    l.attention.k_norm = tied_norm(c, "k_norm", of.attention.k_norm);
    l.attention.v_norm = tied_norm(c, "v_norm", of.attention.v_norm);
  }
  {
    Module f(c, "mlp");
    l.mlp.scope = f.scope;
    l.mlp.gate = tied_linear(c, "gate_proj", of.mlp.gate);
    l.mlp.up = tied_linear(c, "up_proj", of.mlp.up);
    l.mlp.down = tied_linear(c, "down_proj", of.mlp.down);
    l.mlp.activation_scope = c.b.child("act_fn");
  }
  l.input_norm = tied_norm(c, "input_layernorm", of.input_norm);
  l.post_attention_norm = tied_norm(c, "post_attention_layernorm", of.post_attention_norm);
  l.pre_feedforward_norm = tied_norm(c, "pre_feedforward_layernorm", of.pre_feedforward_norm);
  l.post_feedforward_norm = tied_norm(c, "post_feedforward_layernorm", of.post_feedforward_norm);
  l.scalar = buffer(c, "layer_scalar", {1}, c.dtype());
  {
    Module r(c, "router");
    l.moe.router = r.scope;
    l.moe.router_norm = tied_norm(c, "norm", of.moe.router_norm);
    l.moe.scores = tied_linear(c, "proj", of.moe.scores);
  }
  {
    Module e(c, "experts");
    l.moe.experts.experts_scope = e.scope;
    l.moe.experts.activation_scope = c.b.child("act_fn");
  }
  l.moe.after_mlp = tied_norm(c, "post_feedforward_layernorm_1", of.moe.after_mlp);
  l.moe.after_experts = tied_norm(c, "post_feedforward_layernorm_2", of.moe.after_experts);
  l.moe.before_experts = tied_norm(c, "pre_feedforward_layernorm_2", of.moe.before_experts);
  return l;
}

/// DiffusionGemmaDecoderTextAttention.append_to_cache: the canvas behind the prompt, in tensors of their own.
inline void append_canvas(const CacheLayer& entry, Value& k, Value& v) {
  Value keys = eager::cat(entry.keys, k, -2);
  Value values = eager::cat(entry.values, v, -2);
  k = std::move(keys);
  v = std::move(values);
}

/// DiffusionGemmaEncoderTextAttention.forward, which extends the cache, and DiffusionGemmaDecoderTextAttention.forward
/// (`reads`), which does not and looks in both directions.
inline Attended forward_diffusion_attention(Context& c, const Gemma4TextConfig& g, const Gemma4Attention& a,
                                            const Value& x, const Value& mask, const CosSin& positions,
                                            CacheLayer& entry, bool reads) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {batch, tokens, -1, a.head_dim}); };
  const Value q = turned_heads(c, a.q_norm, heads(a.q), positions);
  Value k = heads(a.k);
  Value v = a.keys_as_values ? k : heads(a.v);
  k = turned_heads(c, a.k_norm, std::move(k), positions);
  v = forward(c, a.v_norm, v);
  v = transpose(v, 1, 2);
  if (reads)
    append_canvas(entry, k, v);
  else
    update(c, entry, k, v);
  Attended r =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = !reads, .dropout = g.attention_dropout});
  project_out(c, a.out, r);
  return r;
}

/// DiffusionGemmaEncoderTextLayer.forward and DiffusionGemmaDecoderTextLayer.forward. Unlike Gemma 4's, what goes to
/// the experts is normed before the router runs, and stays.
inline Value forward_diffusion_layer(Context& c, const Gemma4TextConfig& g, const Gemma4Layer& l, Value arg,
                                     const Value& mask, const CosSin& positions, CacheLayer& entry, bool reads) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = forward_diffusion_attention(c, g, l.attention, x, mask, positions, entry, reads);
  x = std::move(attended.out);
  x = forward(c, l.post_attention_norm, x);
  x = add(residual, x);
  residual = x;
  x = forward(c, l.pre_feedforward_norm, x);
  x = forward(c, l.mlp, x);
  const Value of_mlp = forward(c, l.moe.after_mlp, x);
  const Value flat = reshape(residual, {-1, residual.size(-1)});
  const Value for_experts = forward(c, l.moe.before_experts, flat);
  const Routing routing = stacks::route(c, [&] { return route(c, l.moe, flat); });
  attended.weights.reset();  // the router's first result takes its name
  Value of_experts = stacks::experts(c, l.moe.experts, for_experts, routing);
  of_experts = reshape(of_experts, residual.shape());
  of_experts = forward(c, l.moe.after_experts, of_experts);
  x = add(of_mlp, of_experts);
  x = forward(c, l.post_feedforward_norm, x);
  x = add(residual, x);
  return mul_(std::move(x), Value(c.b, l.scalar));
}

/// One of the two stacks: DiffusionGemmaEncoderTextModel, or what DiffusionGemmaDecoderModel has in common with it.
struct DiffusionStack {
  ScopeId scope = 0;
  Embedding embed_tokens;
  TensorId embed_scale = none;
  std::vector<Gemma4Layer> layers;
  RmsNorm norm;
  Rope full_rope, sliding_rope;
};

/// Rotary embeddings of both types of layers.
inline void make_diffusion_ropes(Context& c, const Gemma4TextConfig& g, DiffusionStack& s) {
  Module m(c, "rotary_emb");
  const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
  if (slides < g.layers) s.full_rope = make_rope_of_type(c, false, g.full_head_dim);
  if (slides > 0) s.sliding_rope = make_rope_of_type(c, true, g.head_dim);
}

/// Both models' forwards from the masks on. Which type of layer gets its rotary embedding first is the order of a
/// Python set of strings, which differs from process to process: here the full layers do.
inline Value forward_diffusion_stack(Context& c, const Gemma4TextConfig& g, const DiffusionStack& s,
                                     const Value& embeds, const Value& position_ids, const LayerMasks& masks,
                                     Cache& cache, bool reads) {
  Value x = embeds;
  CosSin full, sliding;
  if (s.full_rope.inv_freq != none) full = forward(c, s.full_rope, position_ids);
  if (s.sliding_rope.inv_freq != none) sliding = forward(c, s.sliding_rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    const Gemma4Layer& l = s.layers[i];
    CacheLayer& entry = cache.layers[i];
    const bool slides = l.attention.slides;
    x = stack({slides ? 1 : 0, l.scope, l.attention.q.weight}, x, entry, [&](const Value& h) {
      return forward_diffusion_layer(c, g, l, h, masks.of(slides), slides ? sliding : full, entry, reads);
    });
  }
  return forward(c, s.norm, x);
}

}  // namespace vlmest
