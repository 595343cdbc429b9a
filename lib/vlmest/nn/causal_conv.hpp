// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/graph/eager/depthwise.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear_cache.hpp>

namespace vlmest {

/// A short convolution of each channel by itself, of which a token sees the tokens before it: weight[channels, 1,
/// taps], as layers of linear attention and gated short convolutions have it. The parameters are those of a
/// torch.nn.Conv1d that is never called itself.
struct CausalConv {
  TensorId weight = none, bias = none;
  std::int64_t taps = 4;
  std::optional<Activation> activation;
};

/// In the order of torch.nn.Conv1d.__init__.
inline CausalConv make_causal_conv(Context& c, const char* name, std::int64_t channels, std::int64_t taps, bool bias,
                                   std::optional<Activation> activation = std::nullopt) {
  Module m(c, name);
  CausalConv r{.taps = taps, .activation = activation};
  r.weight = parameter(c, "weight", {channels, 1, taps});
  if (bias) r.bias = parameter(c, "bias", {channels});
  return r;
}

/// self.conv.weight.squeeze(1), which the functions below unsqueeze again.
inline Value conv_weight(Context& c, const CausalConv& m) {
  return eager::unsqueeze(eager::squeeze(Value(c.b, m.weight), 1), 1);
}
inline Value conv_bias(Context& c, const CausalConv& m) { return m.bias == none ? Value() : Value(c.b, m.bias); }

/// modeling_qwen3_5.py and modeling_lfm2.py, causal_conv1d_fn: x[B, channels, S] -> the same shape.
inline Value causal_conv(Context& c, const CausalConv& m, const Value& x) {
  using namespace eager;
  const Value weight = conv_weight(c, m);
  Value y = depthwise_conv1d(to(x, weight.dtype()), weight, conv_bias(c, m), m.taps - 1);
  y = slice(std::move(y), 2, 0, x.size(2));
  if (m.activation) y = activate(c, *m.activation, y);
  return to(std::move(y), x.dtype());
}

/// The same files, causal_conv1d_update: one token behind those that the state holds, which moves on by it.
inline Value causal_conv_step(Context& c, const CausalConv& m, const Value& x, const Value& state) {
  using namespace eager;
  const Value weight = conv_weight(c, m);
  const Value all = to(cat(state, x, -1), weight.dtype());
  copy_over(state, slice(all, 2, all.size(2) - m.taps, all.size(2)));
  Value y = depthwise_conv1d(all, weight, conv_bias(c, m), 0);
  const std::int64_t end = y.size(2);
  y = slice(std::move(y), 2, end - x.size(2), end);
  if (m.activation) y = activate(c, *m.activation, y);
  return to(std::move(y), x.dtype());
}

/// A layer's convolution over its entry of the cache: of a prompt, whose last inputs are kept, or of one token behind
/// them. Without a cache it is the convolution alone.
inline Value causal_conv(Context& c, const CausalConv& m, Value x, CacheLayer& cache) {
  using namespace eager;
  if (cache.off) return causal_conv(c, m, x);
  if (has_states(cache)) return causal_conv_step(c, m, x, cache.conv_state);
  const std::int64_t tokens = x.size(2);
  x = update_conv_state(c, cache, std::move(x), m.taps);
  x = causal_conv(c, m, x);
  return slice(x, 2, x.size(2) - tokens, x.size(2));
}

}  // namespace vlmest
