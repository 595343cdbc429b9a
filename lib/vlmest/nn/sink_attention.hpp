// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention.hpp>

/// Attention with sinks (Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023; OpenAI, gpt-oss
/// model card, 2025): beside the keys each query head has one learned logit, to which weight goes that no value gets.
namespace vlmest {

/// modeling_gpt_oss.py, eager_attention_forward. sinks[H].
inline Attended eager_sink_attention(Context& c, const AttentionArgs& a, const Value& sinks) {
  using namespace eager;
  const std::int64_t groups = a.q.size(1) / a.k.size(1);
  const Value keys = repeat_kv(a.k, groups), values = repeat_kv(a.v, groups);
  Value weights = mul_scalar(matmul(a.q, transpose(keys, 2, 3)));
  if (a.mask) weights = add(weights, a.mask);
  const Value wide = expand(reshape(sinks, {1, -1, 1, 1}), {a.q.size(0), a.q.size(1), a.q.size(2), 1});
  Value logits = cat(weights, wide, -1);
  Value largest = max_values(logits);
  logits = sub(logits, std::move(largest));
  const Value probabilities = softmax(logits, logits.dtype());
  const Value scores = slice(probabilities, -1, 0, keys.size(2));
  weights = a.dropout ? dropout(c, scores) : scores;
  weights = to(weights, values.dtype());
  const Value out = matmul(weights, values);
  Attended r;
  r.out = contiguous(transpose(out, 1, 2));
  r.weights = weights;
  return r;
}

/// A kernel that reads the sinks beside the keys. Their gradient is a kernel of its own, over the result and its
/// gradient.
inline Value fused_sink_attention(Context& c, const AttentionArgs& a, const Value& sinks) {
  using namespace eager;
  const Value out = flash_attention(c, a);
  const GradEdge eo = edge(out), es = edge(sinks);
  if (!eo && !es) return out;
  Value r = c.b.view(out, out.shape(), out.tensor().strides);
  differentiable(r, "SinksBackward", {eo, es},
                 [kept = saved_result(out, static_cast<bool>(es)), heads = es.shape, t = es.dtype](Gradients& g) {
                   if (g.wants(1)) {
                     Builder& b = kept.builder();
                     const std::array<TensorId, 2> ins{g.in[0].id(), kept.id()};
                     const std::array<TensorId, 1> outs{b.result(t, heads, "sinks gradient")};
                     const Bytes n = data_bytes(kept);
                     b.emit("sinks_backward", MemoryOp{.read = n * 2, .written = size_of(numel(heads), t), .dtype = t},
                            ins, outs);
                     g.out[1] = Value(b, outs[0]);
                   }
                   if (g.wants(0)) g.out[0] = std::move(g.in[0]);
                 });
  return r;
}

/// The attention interface of the run, which has been through without_sdpa. Throws Error for FlashAttention-2, whose
/// kernels know no sinks (GptOssPreTrainedModel, _compatible_flash_implementations).
inline Attended attend_with_sinks(Context& c, const AttentionArgs& a, const Value& sinks) {
  if (c.fused()) return {fused_sink_attention(c, a, sinks), {}};
  if (c.plan.attention == AttentionKind::flash)
    throw Error("--attention", "FlashAttention-2 has no attention sinks, which this language model needs",
                "give --attention eager, which transformers takes by default");
  return eager_sink_attention(c, a, sinks);
}

}  // namespace vlmest
