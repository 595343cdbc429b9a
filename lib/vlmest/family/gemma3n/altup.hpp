// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma3n/text_config.hpp>
#include <vlmest/graph/eager/extremes.hpp>
#include <vlmest/graph/eager/view_write.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

/// Alternating updates (Baykal et al., Alternating Updates for Efficient Transformers, 2023) and the learned augmented
/// residual of Gemma 3n (transformers 5.17 modeling_gemma3n.py).
namespace vlmest {

/// Gemma3nTextAltUp.
struct AltUp {
  TensorId output_scale = none, input_scale = none;
  Linear correction, prediction, router;
  RmsNorm router_norm;
};

/// In the order of Gemma3nTextAltUp.__init__.
inline AltUp make_altup(Context& c, const Gemma3nTextConfig& g) {
  Module m(c, "altup");
  AltUp a;
  a.output_scale = parameter(c, "correct_output_scale", {g.hidden});
  a.correction = make_linear(c, "correction_coefs", g.copies, g.copies, false);
  a.prediction = make_linear(c, "prediction_coefs", g.copies, checked_mul(g.copies, g.copies), false);
  a.router = make_linear(c, "modality_router", g.hidden, g.copies, false);
  a.router_norm = make_rms_norm(c, "router_norm", g.hidden, RmsNorm::Kind::gemma4);
  a.input_scale = buffer(c, "router_input_scale", Shape{}, c.dtype());
  return a;
}

/// Throws Error for training over coefficients in a storage type of their own: the class clamps their elements.
inline void check_coefs(const Context& c, const AltUp& a) {
  if (c.b.grad_enabled() && (a.prediction.stored || a.correction.stored))
    throw Error("plan.weights", "Gemma 3n's training clamps the elements of its layers' coefficients, which are packed",
                "leave plan.weights out");
}

/// compute_router_modalities: [B, S, copies].
inline Value router_modalities(Context& c, const AltUp& a, const Value& x) {
  using namespace eager;
  Value inputs = forward(c, a.router_norm, x);
  inputs = mul(std::move(inputs), Value(c.b, a.input_scale));
  const Value routed = forward(c, a.router, inputs);
  Value turned = unary(functions::tanh, to(routed, DType::fp32));
  return to(std::move(turned), x.dtype());
}

/// predict: states[copies, B, S, hidden] -> what the copies become, of the same shape. The methods of AltUp are called
/// by the layer, so that what they run beside their modules is the layer's.
inline Value predict(Context& c, const Gemma3nTextConfig& g, const AltUp& a, const Value& states) {
  using namespace eager;
  check_coefs(c, a);
  const Value modalities = router_modalities(c, a, select(states, 0, g.active));
  if (c.b.grad_enabled()) pointwise_("clamp_", detached(Value(c.b, a.prediction.weight)));
  Value coefs = forward(c, a.prediction, modalities);
  coefs = reshape(std::move(coefs), {modalities.size(0), modalities.size(1), g.copies, g.copies});
  coefs = permute(std::move(coefs), {0, 1, 3, 2});
  Value product = matmul(permute(states, {1, 2, 3, 0}), coefs);
  const auto turned = [](const Value& v) { return permute(v, {3, 0, 1, 2}); };
  return contiguous(add_to_part(product, turned, states));
}

/// correct: how the copies follow what the active one became, [B, S, hidden]. Training holds the coefficients' weight
/// within bounds by a copy.
inline Value correct(Context& c, const Gemma3nTextConfig& g, const AltUp& a, const Value& predictions,
                     const Value& activated) {
  using namespace eager;
  const Value modalities = router_modalities(c, a, activated);
  Value innovation = sub(activated, select(predictions, 0, g.active));
  innovation = repeat(innovation, {g.copies, 1, 1, 1});
  Value weight, coefs;
  if (c.b.grad_enabled()) {
    weight = clamp(Value(c.b, a.correction.weight), ClampedAt::both);
    coefs = add_scalar(linear(modalities, weight, Value()));
  } else {
    coefs = add_scalar(forward(c, a.correction, modalities));
  }
  coefs = unsqueeze(permute(std::move(coefs), {2, 0, 1}), -1);
  Value corrected = mul(innovation, coefs);
  corrected = add_(std::move(corrected), predictions);
  return contiguous(corrected);
}

/// Gemma3nTextLaurelBlock.
struct Laurel {
  ScopeId scope = 0;
  Linear left, right;
  RmsNorm norm;
};
inline Laurel make_laurel(Context& c, const Gemma3nTextConfig& g) {
  Module m(c, "laurel");
  Laurel l{.scope = m.scope};
  l.left = make_linear(c, "linear_left", g.hidden, g.laurel_rank, false);
  l.right = make_linear(c, "linear_right", g.laurel_rank, g.hidden, false);
  l.norm = make_rms_norm(c, "post_laurel_norm", g.hidden, RmsNorm::Kind::gemma4);
  return l;
}
inline Value forward(Context& c, const Laurel& l, const Value& x) {
  InScope in(c.b, l.scope);
  Value y = forward(c, l.left, x);
  y = forward(c, l.right, y);
  const Value normed = forward(c, l.norm, y);
  return eager::add(x, normed);
}

}  // namespace vlmest
