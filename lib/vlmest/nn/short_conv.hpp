// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/causal_conv.hpp>
#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// A gated short convolution, in the place of attention: one linear gives what is convolved, a gate before and a gate
/// behind the convolution. transformers 5.17 models/lfm2, class Lfm2ShortConv.
struct ShortConv {
  ScopeId scope = 0;
  CausalConv conv;
  Linear in, out;

  /// The parameter that was declared first.
  TensorId first() const { return conv.weight; }
};

/// In the order of Lfm2ShortConv.__init__.
inline ShortConv make_short_conv(Context& c, const char* name, std::int64_t width, std::int64_t taps, bool bias) {
  Module m(c, name);
  ShortConv r{.scope = m.scope};
  r.conv = make_causal_conv(c, "conv", width, taps, bias);
  r.in = make_linear(c, "in_proj", width, checked_mul(width, 3), bias);
  r.out = make_linear(c, "out_proj", width, width, bias);
  return r;
}

/// Lfm2ShortConv.forward: x[B, S, width]; `padding` is the mask of sequences of several lengths, else empty. Throws
/// Error for a stack that does not run this layer op by op.
inline Value forward(Context& c, const ShortConv& m, Value arg, const Value& padding, CacheLayer& cache) {
  using namespace eager;
  if (!c.stack().writes_out_linear_attention)
    throw Error("plan.runtime", "kernels that fuse a gated short convolution are not modelled",
                "leave plan.runtime out: transformers runs it");
  refuse_part(c, "convolutions along the sequence");
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  if (padding) x = to(mul(x, unsqueeze(padding, 2)), x.dtype());
  const std::int64_t tokens = x.size(1);
  if (!cache.off && has_states(cache) && tokens != 1)
    throw Error("decode", "several tokens over the states of short convolutions are not modelled", "decode one token");
  const Value all = transpose(forward(c, m.in, x), -1, -2);
  const std::int64_t width = all.size(1) / 3;
  const std::vector<Value> parts = split(all, std::vector<std::int64_t>(3, width), -2);
  x = mul(parts[0], parts[2]);
  x = causal_conv(c, m.conv, std::move(x), cache);
  if (!cache.off) cache.seen += tokens;
  Value y = mul(parts[1], x);
  y = contiguous(transpose(y, -1, -2));
  y = forward(c, m.out, y);
  return y;
}

}  // namespace vlmest
