// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma3n/altup.hpp>
#include <vlmest/family/gemma3n/text_attention.hpp>
#include <vlmest/graph/eager/deviation.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma3n.py, Gemma3nTextMLP.
struct Gemma3nMlp {
  ScopeId scope = 0, activation_scope = 0;
  Linear gate, up, down;
  bool sparse = false;  ///< of the gate, what lies far above its mean is kept
};

inline Gemma3nMlp make_gemma3n_mlp(Context& c, const Gemma3nTextConfig& g, std::int64_t layer) {
  const auto i = static_cast<std::size_t>(layer);
  Module m(c, "mlp");
  Gemma3nMlp r{.scope = m.scope, .sparse = g.sparse[i]};
  r.gate = make_linear(c, "gate_proj", g.hidden, g.inner[i], false);
  r.up = make_linear(c, "up_proj", g.hidden, g.inner[i], false);
  r.down = make_linear(c, "down_proj", g.inner[i], g.hidden, false);
  r.activation_scope = c.b.child("act_fn");
  return r;
}

/// torch.distributions.normal.Normal(0, 1).icdf of one number on the device: loc + scale * erfinv(2 value - 1) *
/// sqrt(2), of which one expression's temporaries live to its end.
inline Value normal_icdf(const Value& probability) {
  using namespace eager;
  Value x = sub_scalar(mul_scalar(probability));
  x = mul_scalar(unary("erfinv", std::move(x)));
  x = mul_scalar(std::move(x));
  return add_scalar(std::move(x));
}

/// _gaussian_topk: gate - (mean + deviation * how many deviations leave so many below), above zero.
inline Value gaussian_topk(Context& c, const Value& gate) {
  using namespace eager;
  const Value target = from_host(c.b, Shape{}, DType::fp32);
  Value multiplier = normal_icdf(target);
  multiplier = to(multiplier, gate.dtype());
  const Value center = mean(gate, -1, true);
  const Value deviation = standard_deviation(gate);
  Value cutoff;
  {
    Value scaled = mul(deviation, multiplier);
    cutoff = add(center, std::move(scaled));
  }
  Value above = sub(gate, cutoff);
  return unary(functions::relu, std::move(above));
}

/// Gemma3nTextMLP.forward: each step is a variable of its own.
inline Value forward(Context& c, const Gemma3nTextConfig& g, const Gemma3nMlp& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.scope);
  Value gate = forward(c, m.gate, x);
  if (m.sparse) gate = gaussian_topk(c, gate);
  Value activations;
  {
    InScope a(c.b, m.activation_scope);
    activations = activate(c, g.activation, gate);
  }
  const Value up = forward(c, m.up, x);
  return forward(c, m.down, mul(activations, up));
}

/// Gemma3nTextDecoderLayer.
struct Gemma3nLayer {
  ScopeId scope = 0, activation_scope = 0;
  Gemma3nAttention attention;
  Gemma3nMlp mlp;
  RmsNorm input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm, per_layer_norm;
  AltUp altup;
  Laurel laurel;
  Linear per_layer_gate, per_layer_projection;
};

/// In the order of Gemma3nTextDecoderLayer.__init__.
inline Gemma3nLayer make_gemma3n_layer(Context& c, const Gemma3nTextConfig& g, std::int32_t index) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "layers", index);
  Gemma3nLayer l{.scope = m.scope};
  l.attention = make_gemma3n_attention(c, g, index);
  l.mlp = make_gemma3n_mlp(c, g, index);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, kind);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, kind);
  l.pre_feedforward_norm = make_rms_norm(c, "pre_feedforward_layernorm", g.hidden, kind);
  l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden, kind);
  l.activation_scope = c.b.child("act_fn");
  l.altup = make_altup(c, g);
  l.laurel = make_laurel(c, g);
  l.per_layer_gate = make_linear(c, "per_layer_input_gate", g.hidden, g.per_layer, false);
  l.per_layer_projection = make_linear(c, "per_layer_projection", g.per_layer, g.hidden, false);
  l.per_layer_norm = make_rms_norm(c, "post_per_layer_input_norm", g.hidden, kind);
  return l;
}

/// What the layer's own part of the inputs per layer, [B, S, width], adds to the copies but the first one.
inline Value per_layer_update(Context& c, const Gemma3nTextConfig& g, const Gemma3nLayer& l, const Value& corrected,
                              const Value& own) {
  using namespace eager;
  Value first = clone(select(corrected, 0, g.active));
  if (g.scales_output) first = mul(first, Value(c.b, l.altup.output_scale));
  first = forward(c, l.per_layer_gate, first);
  {
    InScope a(c.b, l.activation_scope);
    first = activate(c, g.activation, first);
  }
  first = mul(first, own);
  first = forward(c, l.per_layer_projection, first);
  return forward(c, l.per_layer_norm, first);
}

/// Gemma3nTextDecoderLayer.forward of states[copies, B, S, hidden].
inline Value forward(Context& c, const Gemma3nTextConfig& g, const Gemma3nLayer& l, Value arg, const Value& own,
                     const Value& mask, const CosSin& positions, CacheLayer& cache, LentKeys& lent) {
  using namespace eager;
  const Value states = std::move(arg);
  InScope in(c.b, l.scope);
  const Value predictions = predict(c, g, l.altup, states);
  const Value active = select(predictions, 0, g.active);
  const Value normed = forward(c, l.input_norm, active);
  const Value laurel = forward(c, l.laurel, normed);
  Attended attended = forward(c, g, l.attention, normed, mask, positions, cache, lent);  // its weights stay to the end
  Value attention = std::move(attended.out);
  attention = forward(c, l.post_attention_norm, attention);
  const Value gated = add(active, attention);
  const Value joined = div_scalar(add(gated, laurel));
  const Value feed = forward(c, l.pre_feedforward_norm, joined);
  const Value fed = forward(c, g, l.mlp, feed);
  const Value fed_normed = forward(c, l.post_feedforward_norm, fed);
  const Value activated = add(joined, fed_normed);
  Value corrected = correct(c, g, l.altup, predictions, activated);
  const Value update = per_layer_update(c, g, l, corrected, own);
  add_to_slice(corrected, 1, g.copies, update);
  return corrected;
}

}  // namespace vlmest
