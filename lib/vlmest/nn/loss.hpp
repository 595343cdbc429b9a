// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/fused_loss.hpp>
#include <vlmest/nn/sequence.hpp>

namespace vlmest {

/// torch.nn.functional.cross_entropy of fp32 rows against class numbers: log_softmax, then nll_loss.
inline Value cross_entropy(Value logits, Value target) {
  using namespace eager;
  Builder& b = logits.builder();
  const DType t = logits.dtype();
  const Shape rows = logits.shape();
  const GradEdge e = edge(logits);
  Value log_probs = pointwise("_log_softmax", t, logits);
  const Value kept = saved_result(log_probs, static_cast<bool>(e));
  differentiable(log_probs, "LogSoftmaxBackward0", {e}, [kept](Gradients& g) {
    const DType u = g.in[0].dtype();
    g.out[0] = pointwise("_log_softmax_backward_data", u, g.in[0], kept);
  });
  const GradEdge el = edge(log_probs);
  const std::array<TensorId, 2> outs{b.result(t, Shape{}, "loss"), b.result(t, Shape{}, "total_weight")};
  const std::array<TensorId, 2> ins{log_probs.id(), target.id()};
  b.emit("nll_loss_forward", MemoryOp{.read = data_bytes(target) * 2, .written = Bytes(8), .dtype = t}, ins, outs);
  Value loss(b, outs[0]), weight(b, outs[1]);
  const bool trains = static_cast<bool>(el);
  differentiable(
      loss, "NllLossBackward0", {el},
      [x = saved(log_probs, trains), y = saved(target, trains), w = saved(weight, trains), rows, t](Gradients& g) {
        Builder& at = x.builder();
        const TensorId r = at.result(t, rows, "nll_loss_backward");
        const std::array<TensorId, 4> from{g.in[0].id(), x.id(), y.id(), w.id()};
        const std::array<TensorId, 1> to{r};
        at.emit("nll_loss_backward",
                MemoryOp{.read = data_bytes(y), .written = size_of(numel(rows), t), .dtype = t, .kernels = 2}, from,
                to);
        g.out[0] = Value(at, r);
      });
  return loss;
}

/// Of labels with one more behind the last: the next token's id at every position (transformers loss/loss_utils.py,
/// ForCausalLMLoss, whose variable they stay).
inline Value next_tokens(const Value& padded) {
  using namespace eager;
  return contiguous(slice(padded, 1, 1, padded.size(1)));
}

/// What logits are held against: labels moved by one, of which `padded` keeps the variable that torch does; of a part
/// of a sequence they were moved before.
inline Value loss_targets(Context& c, const Value& labels, Value& padded) {
  if (c.sequence) return c.sequence->targets;
  padded = eager::pad(labels, -1, 0, 1);
  return next_tokens(padded);
}

/// How this run computes its loss: a stack may fuse it, unless it is to be chunked.
inline Loss loss_kind(const Context& c) {
  return c.stack().fuses_loss && c.plan.loss == Loss::unfused ? Loss::fused : c.plan.loss;
}

/// transformers loss/loss_utils.py, ForCausalLMLoss: fp32 logits[B, S, V] against the next token's id. One kernel in
/// its place takes the logits in their own type.
inline Value causal_lm_loss(Context& c, const Value& logits, const Value& labels) {
  using namespace eager;
  const bool fused = loss_kind(c) == Loss::fused;
  Value x = fused ? logits : to(logits, DType::fp32);
  Value padded;
  Value shifted = loss_targets(c, labels, padded);
  x = view(std::move(x), {-1, logits.size(2)});
  shifted = view(std::move(shifted), {-1});
  return fused ? fused_cross_entropy(c, std::move(x), shifted) : cross_entropy(x, shifted);
}

/// As checkpoints' own code often computes it: CrossEntropyLoss of the logits ahead of the last against the labels
/// behind the first, both copied.
inline Value shifted_loss(const Value& logits, const Value& labels) {
  using namespace eager;
  const std::int64_t n = logits.size(1);
  Value x = contiguous(slice(logits, 1, 0, n - 1));
  Value y = contiguous(slice(labels, 1, 1, n));
  x = view(std::move(x), {-1, logits.size(2)});
  y = view(std::move(y), {-1});
  return cross_entropy(x, y);
}

/// What a model returns: the logits of the positions that are asked for, or, with labels, the loss over all of them.
/// `finish` is what a class runs on its logits; the chunked loss, which has no logits, does not call it.
template <class Finish>
Value head_output(Context& c, const Linear& head, const Value& hidden, Finish&& finish) {
  using namespace eager;
  if (!c.labels) return finish(forward(c, head, kept_positions(hidden, c.plan.logits)));
  if (loss_kind(c) == Loss::chunked) {
    if (head.stored)
      throw Error("plan.loss", "a chunked loss needs a wide output head", "use plan.loss=unfused or fused");
    Value padded;
    Value shifted = loss_targets(c, *c.labels, padded);
    const Value x = view(hidden, {-1, hidden.size(2)});
    shifted = view(std::move(shifted), {-1});
    return chunked_cross_entropy(c, x, head, shifted);
  }
  Value logits = finish(forward(c, head, kept_positions(hidden, Logits::all)));
  return causal_lm_loss(c, logits, *c.labels);
}
inline Value head_output(Context& c, const Linear& head, const Value& hidden) {
  return head_output(c, head, hidden, [](Value logits) { return logits; });
}

}  // namespace vlmest
