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

/// self.conv.weight.squeeze(1), which transformers' own functions unsqueeze again.
inline Value squeezed_weight(Context& c, const CausalConv& m) { return eager::squeeze(Value(c.b, m.weight), 1); }
inline Value conv_weight(Context& c, const CausalConv& m) { return eager::unsqueeze(squeezed_weight(c, m), 1); }
inline Value conv_bias(Context& c, const CausalConv& m) { return m.bias == none ? Value() : Value(c.b, m.bias); }

/// Whether the package causal-conv1d runs it. Throws Error where the package has no kernel for it.
inline bool by_package(const Context& c, const CausalConv& m, std::int64_t channels) {
  if (!c.plan.packages.causal_conv1d) return false;
  namespace package = eager::causal_conv1d;
  const char* hint = "leave causal-conv1d out of plan.packages: transformers' own function runs it";
  if (m.taps < package::fewest_taps || m.taps > package::most_taps)
    throw Error("plan.packages", "causal-conv1d has no kernel for " + std::to_string(m.taps) + " taps", hint);
  if (channels % package::channel_step != 0)
    throw Error("plan.packages", "causal-conv1d has no kernel for " + std::to_string(channels) + " channels", hint);
  if (m.activation && *m.activation != Activation::silu)
    throw Error("plan.packages", "causal-conv1d has SiLU behind a convolution and no other activation", hint);
  return true;
}

/// modeling_qwen3_5.py and modeling_lfm2.py, causal_conv1d_fn, or the package's: x[B, channels, S] -> the same shape.
inline Value causal_conv(Context& c, const CausalConv& m, const Value& x) {
  using namespace eager;
  if (by_package(c, m, x.size(1))) return causal_conv1d_fn(x, squeezed_weight(c, m), conv_bias(c, m));
  const Value weight = conv_weight(c, m);
  Value y = depthwise_conv1d(to(x, weight.dtype()), weight, conv_bias(c, m), m.taps - 1);
  y = slice(std::move(y), 2, 0, x.size(2));
  if (m.activation) y = activate(c, *m.activation, y);
  return to(std::move(y), x.dtype());
}

/// The same files, causal_conv1d_update: one token behind those that the state holds, which moves on by it.
inline Value causal_conv_step(Context& c, const CausalConv& m, const Value& x, const Value& state) {
  using namespace eager;
  if (by_package(c, m, x.size(1))) return causal_conv1d_update(x, state, squeezed_weight(c, m), conv_bias(c, m));
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
  x = update_conv_state(c, cache, x, m.taps);
  x = causal_conv(c, m, x);
  return slice(x, 2, x.size(2) - tokens, x.size(2));
}

}  // namespace vlmest
