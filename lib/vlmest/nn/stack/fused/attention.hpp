// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/attention_args.hpp>

namespace vlmest::stacks::fused {

inline Attended attend(Context& c, const AttentionArgs& a) { return {flash_attention(c, a), {}}; }

/// A kernel that reads the sinks beside the keys. Their gradient is a kernel of its own, over the result and its
/// gradient.
inline Value sink_attention(Context& c, const AttentionArgs& a, const Value& sinks) {
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

inline Attended attend_with_sinks(Context& c, const AttentionArgs& a, const Value& sinks) {
  return {sink_attention(c, a, sinks), {}};
}

}  // namespace vlmest::stacks::fused
