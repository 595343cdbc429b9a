// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>

#include <vlmest/nn/linear.hpp>

/// Losses whose kernel writes the logits' gradient over the logits: Liger-Kernel 0.8.2 (Hsu et al., arXiv:2410.10989;
/// src/liger_kernel/ops/cross_entropy.py and fused_linear_cross_entropy.py).
namespace vlmest {

/// Which of the targets count; the host waits for their number.
inline Value counted_targets(const Value& target) {
  using namespace eager;
  Value counted = compare_scalar("ne.Scalar", target);
  item(sum_all(counted));
  return counted;
}

/// liger_cross_entropy_kernel: one pass over the logits for their largest and their sum, a second one that writes the
/// gradient.
inline void cross_entropy_in_place(const Value& logits, const Value& target, const Value& losses) {
  Builder& b = logits.builder();
  const Bytes n = eager::data_bytes(logits);
  const std::array<TensorId, 2> ins{logits.id(), target.id()};
  const std::array<TensorId, 2> outs{losses.id(), logits.id()};
  b.emit("liger_cross_entropy",
         MemoryOp{.read = n * 2 + eager::data_bytes(target), .written = n, .dtype = logits.dtype()}, ins, outs);
}

/// The backward: what the forward left is the gradient; only where the loss was scaled is it multiplied by the incoming
/// one, in place (element_mul_kernel). Finding that out is a comparison that the host waits for.
inline void scale_gradients(const Value& incoming, std::initializer_list<const Value*> kept, bool scaled) {
  using namespace eager;
  Builder& b = incoming.builder();
  const Value one = from_host(b, Shape{}, DType::fp32);
  item(reduce("all", DType::boolean, Shape{}, compare("eq.Tensor", incoming, one)));
  if (!scaled) return;
  for (const Value* v : kept)
    if (*v) pointwise_("element_mul", *v, incoming);
}

/// LigerCrossEntropyFunction: logits[N, V] in their own type against class numbers.
inline Value fused_cross_entropy(Context& c, Value logits, const Value& target) {
  using namespace eager;
  const GradEdge e = edge(logits);
  const bool trains = static_cast<bool>(e);
  Value loss, gradient;
  {
    NoGrad off(c.b);
    const Value losses = fill(c.b, "zeros", {logits.size(0)}, logits.dtype());
    const Value counted = counted_targets(target);
    for (const char* extreme : {"max", "min"}) {
      Value known = mul(target, counted);
      item(compare_scalar("lt.Scalar", reduce(extreme, DType::int64, Shape{}, std::move(known))));
    }
    cross_entropy_in_place(logits, target, losses);
    loss = sum_all(losses);
    gradient = saved_result(logits, trains);
  }
  differentiable(loss, "LigerCrossEntropyFunctionBackward", {e},
                 [gradient, scaled = c.plan.gradient_accumulation > 1](Gradients& g) {
                   scale_gradients(g.in[0], {&gradient}, scaled);
                   g.out[0] = gradient;
                 });
  return loss;
}

/// Tokens of a slice: so many that a slice's logits are about as large as all hidden states, a power of two
/// (fused_linear_cross_entropy.py, fused_linear_cross_entropy_forward).
constexpr std::int64_t loss_chunk(std::int64_t tokens, std::int64_t hidden, std::int64_t vocabulary) {
  const std::int64_t slices = (vocabulary + hidden - 1) / hidden;
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((tokens + slices - 1) / slices)));
}

/// LigerFusedLinearCrossEntropyFunction: hidden[N, H] and the head's weight[V, H] without logits of all tokens; the
/// gradients of both are made in the forward and kept, summed up in the weight's type. The last slice's logits are
/// variables of the function, which the next one's rebind.
inline Value chunked_cross_entropy(Context& c, Value hidden, const Linear& head, const Value& target) {
  using namespace eager;
  if (head.stored || head.adapter != none)
    throw Error("plan.loss", "the chunked loss multiplies by the head's own weight", "take lm_head out of the targets");
  const Value weight(c.b, head.weight);
  const Value bias = head.bias == none ? Value() : Value(c.b, head.bias);
  const GradEdge eh = edge(hidden), ew = edge(weight), eb = edge(bias);
  const std::int64_t tokens = hidden.size(0), chunk = loss_chunk(tokens, hidden.size(1), weight.size(0));
  Value loss, d_hidden, d_weight, d_bias;
  {
    NoGrad off(c.b);
    d_hidden = fill(c.b, "zeros_like", hidden.shape(), hidden.dtype());
    if (ew) d_weight = fill(c.b, "zeros_like", weight.shape(), weight.dtype());
    if (bias) d_bias = fill(c.b, "zeros_like", bias.shape(), bias.dtype());
    const Value losses = fill(c.b, "zeros", {tokens}, DType::fp32);
    const Value counted = counted_targets(target);
    Value logits, gradient, turned;
    for (std::int64_t at = 0; at < tokens; at += chunk) {
      const std::int64_t end = std::min(at + chunk, tokens);
      const Value x = slice(hidden, 0, at, end), y = slice(target, 0, at, end), own = slice(losses, 0, at, end);
      logits = mm(x, transpose(weight, 0, 1));
      if (bias) logits = add(std::move(logits), bias);
      cross_entropy_in_place(logits, y, own);
      copy_(slice(losses, 0, at, end), own);
      gradient = logits;
      Value dx = mm(gradient, weight);
      copy_(slice(d_hidden, 0, at, end), std::move(dx));
      if (d_weight) {
        turned = transpose(gradient, 0, 1);
        Value part = mm(transpose(gradient, 0, 1), x);
        part = to(std::move(part), DType::fp32);
        add_(d_weight, std::move(part));
      }
      if (d_bias) {
        Value part = sum(gradient, 0, false);
        add_(d_bias, std::move(part));
      }
    }
    loss = sum_all(losses);
  }
  const bool trains = eh || ew || eb;
  differentiable(loss, "LigerFusedLinearCrossEntropyFunctionBackward", {eh, ew, eb},
                 [dh = saved(d_hidden, trains), dw = saved(d_weight, trains), db = saved(d_bias, trains),
                  scaled = c.plan.gradient_accumulation > 1](Gradients& g) {
                   scale_gradients(g.in[0], {&dh, &dw, &db}, scaled);
                   if (g.wants(0)) g.out[0] = dh;
                   if (g.wants(1)) g.out[1] = dw;
                   if (g.wants(2)) g.out[2] = db;
                 });
  return loss;
}

}  // namespace vlmest
