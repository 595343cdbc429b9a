// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention_args.hpp>

namespace vlmest {

/// A step of a layer that is not there.
struct NoStep {
  void operator()(Value&) const {}
};

/// residual + x.
struct PlainSum {
  Value operator()(const Value& residual, const Value& x) const { return eager::add(residual, x); }
};

/// A pre-norm transformer layer (modeling_llama.py, LlamaDecoderLayer.forward; modeling_clip.py,
/// CLIPEncoderLayer.forward): x + attention(norm1(x)), then x + feed_forward(norm2(x)); `after_…` rebinds what goes
/// into a sum (a further norm, a gate), `sum` is what adds it up. Eager attention's weights, which `attention` returns
/// beside its result, are a variable of the layer and stay to its end.
template <class Norm, class SelfAttention, class FeedForward, class AfterAttention = NoStep,
          class AfterFeedForward = NoStep, class Sum = PlainSum>
Value pre_norm_layer(Context& c, ScopeId scope, Value arg, const Norm& norm1, SelfAttention&& attention,
                     const Norm& norm2, FeedForward&& feed_forward, AfterAttention&& after_attention = {},
                     AfterFeedForward&& after_feed_forward = {}, Sum&& sum = {}) {
  Value x = std::move(arg);
  InScope in(c.b, scope);
  Value residual = x;
  x = forward(c, norm1, x);
  Attended attended = attention(x);
  x = std::move(attended.out);
  after_attention(x);
  x = sum(residual, x);
  residual = x;
  x = forward(c, norm2, x);
  x = feed_forward(x);
  after_feed_forward(x);
  x = sum(residual, x);
  return x;
}

}  // namespace vlmest
